-- Carries a page of a frozen campaign's line over into new keys. Each ticket keeps its number, in a new generation. It passes over
-- those whom the new keys have as holders, and those whose ticket, or a later one, has ended by the new keys: they were served.
--
-- KEYS  behind those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  1 the attempt, 2 the generation, 3 the entry behind which the page begins, '' for the line's head, 4 how many
-- Returns {word, …}
--   'carried', the page's last entry or '' behind the line's last one, first ticket that was carried or '', last one or '', how many, how
--              many were passed over. A line of which the counters are gone, or the stream, has nobody
--   'outdone'  another attempt froze the campaign, or finished

local attempt, generation, behind, count = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local holders, line_to, tickets_to = KEYS[6], KEYS[7], KEYS[8]

local c, instead = campaign('frozen', 'line')
if not c then return instead end
if tonumber(c[1]) ~= attempt then return {'outdone'} end
local line = line_of(c[2])
if not line or not line.generation then return {'carried', '', '', '', '0', '0'} end
local from = behind == '' and line.id(line.through + 1) or '(' .. behind
local page = redis.pcall('XRANGE', line_key, from, whole(line.generation), 'COUNT', count)
if page.err then
  if string.find(page.err, 'WRONGTYPE', 1, true) then return {'carried', '', '', '', '0', '0'} end
  return page
end

local users, waits = {}, {}
for _, entry in ipairs(page) do
  local fields = entry[2]
  if fields[1] == 'user' and fields[3] == 'at' then
    users[#users + 1] = fields[2]
    waits[#waits + 1] = {ticket = tonumber(string.sub(entry[1], string.find(entry[1], '-', 1, true) + 1)), at = fields[4]}
  end
end
local function of_users(key) return #users > 0 and redis.call('HMGET', key, unpack(users)) or {} end
local holds, tickets = of_users(holders), of_users(tickets_to)

-- ended tells whether an entry in tickets says that a ticket has ended, or a later one of the same user.
local function ended(entry, ticket)
  if not entry or string.sub(entry, TICKET + 1) ~= OVER then return false end
  local of, number = struct.unpack('>I6I6', entry)
  return of > line.generation or of == line.generation and number >= ticket
end

local pairs_of, twice, passed = {}, {}, 0
for n, user in ipairs(users) do
  local ticket, known = waits[n].ticket, tickets[n]
  if holds[n] or ended(known, ticket) then
    passed = passed + 1
  elseif not twice[user] and not (known and struct.unpack('>I6', known) == generation) then
    twice[user] = true -- nobody is in line twice, but in keys that somebody else wrote
    redis.call('XADD', line_to, whole(generation) .. '-' .. whole(ticket), 'user', user, 'at', waits[n].at)
    pairs_of[#pairs_of + 1] = user
    pairs_of[#pairs_of + 1] = struct.pack('>I6I6', generation, ticket)
    waits.first, waits.last = waits.first or ticket, ticket
  end
end
each(pairs_of, 1, #pairs_of, function(...) redis.call('HSET', tickets_to, ...) end)
return {'carried', #page == tonumber(count) and page[#page][1] or '', waits.first and whole(waits.first) or '',
  waits.last and whole(waits.last) or '', whole(#pairs_of / 2), whole(passed)}
