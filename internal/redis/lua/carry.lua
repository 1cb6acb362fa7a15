-- Copies a page of a frozen campaign's line to new keys. Each ticket keeps its number, in a new generation. A user is passed over if the new
-- keys have them as a holder, or if the new keys say that this ticket or a later one of theirs has ended: they were served.
--
-- KEYS  after those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  attempt     of the rebuild
--       generation  of the new line
--       after       the id of the entry after which the page begins, or '' for the head of the line
--       count       how many entries
-- Returns one of
--   {'carried', more, first, last, people, passed}
--     more         the id of the page's last entry, or '' if the line has no more
--     first, last  the first and the last ticket that was copied, or ''
--     people       how many were copied
--     passed       how many were passed over
--     If the counters or the stream of the line are gone, nobody is in it
--   {'superseded'}  another attempt froze the campaign, or finished

local a = arguments()
local holders, line_to, tickets_to = KEYS[6], KEYS[7], KEYS[8]
local generation = tonumber(a.generation)

local c, instead = campaign('line')
if not c then return instead end
if tonumber(c.frozen) ~= tonumber(a.attempt) then return {'superseded'} end
local line = line_of(c.line)
local nobody = {'carried', 'more', '', 'first', '', 'last', '', 'people', 0, 'passed', 0}
if not line or not line.generation then return nobody end
local from = a.after == '' and line.id(line.through + 1) or '(' .. a.after
local page = redis.pcall('XRANGE', line_key, from, integer(line.generation), 'COUNT', a.count)
if page.err then return string.find(page.err, 'WRONGTYPE', 1, true) and nobody or page end

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

-- ended reports whether an entry in tickets says that a ticket, or a later one of the same user, has ended.
local function ended(entry, ticket)
  if not entry or string.sub(entry, TICKET + 1) ~= OVER then return false end
  local of, number = struct.unpack('>I6I6', entry)
  return of > line.generation or of == line.generation and number >= ticket
end

local seats, copied, passed, first, last = {}, {}, 0, '', ''
for n, user in ipairs(users) do
  local ticket, known = waits[n].ticket, tickets[n]
  if holds[n] or ended(known, ticket) then
    passed = passed + 1
  elseif not copied[user] and not (known and struct.unpack('>I6', known) == generation) then
    copied[user] = true -- only keys that something else wrote have a user twice
    redis.call('XADD', line_to, integer(generation) .. '-' .. integer(ticket), 'user', user, 'at', waits[n].at)
    seats[#seats + 1] = user
    seats[#seats + 1] = struct.pack('>I6I6', generation, ticket)
    first, last = first == '' and ticket or first, ticket
  end
end
each(seats, 1, #seats, function(...) redis.call('HSET', tickets_to, ...) end)
return {'carried', 'more', #page == tonumber(a.count) and page[#page][1] or '', 'first', first, 'last', last, 'people', #seats / 2, 'passed', passed}
