-- Decides one claim by each of the users, in order, by the rule firstcome.Decide,
-- and appends what it issues to the journal: all of it or nothing. The users are those who claim, or those next in
-- the waiting line: line.lua has what a line is.
--
-- ARGV  1 the gate's time in microseconds, or '' for the server's own clock
--       2 how many numbers may be undrained, or '' for any; with more, nothing is issued
--       3 the channel that wakes recorders, 4 the campaign's id
--       5 how long returned stock is quarantined, in microseconds
--       6 what the users want: claim a coupon; issue, which passes the line, the opening and a pause; or leave the line. Or serve, and the users are
--         those next in line
--       7 of claim how many people may be in line, of serve how many are served at most
--       8 the ledger's epoch, as far as is known; 0: it is not
--       9 an epoch, and 10 the highest number of it that the gate told this node
--       11 and following: the users
-- Returns one of
--   {'lost'}  part of what the gate knew of the campaign is gone
--   {'behind', epoch}  the epoch here has ended by the ledger, so another gate decides
--   {'decided', outcomes, first, now, version, terms_version, epoch, opens_at, closes_at,
--    quarantined, in_force, opened_at, sold_out_at, closed_at, {entry, …}, line…}
--     all as they are after the batch:
--     outcomes  a digit for each user; 0: not decided, because the backlog or the line is full. Of leave: waiting, they left now;
--               closed, they were not in line any more; 0, they never joined. Of serve none
--     first     the number of the first user who was issued a coupon; the others follow
--     entry     of each user who holds a coupon, in order, with 1 before it if the ledger surely has it, else 0
--     line      only if the campaign ever had a pace:
--               the field line;
--               quantity, paused, what is quarantined, until when, the clock, 0 if the backlog is full, how many joined, 1 if people
--               stand by, with spaces between;
--               why the generation ended, or '';
--               of claim the tickets of those who wait; of issue how many were in line after each user; of leave the generation and the
--               ticket that the user had last, if the line has a log and this is not older than the epoch; of serve the tickets that were issued, and in a last
--               value their users
--
-- Numbers and instants are whole and below 2^53, so Lua's doubles hold them. A window that ends after the year
-- 2255 is rounded to some microseconds, which the clock will not see. Everything that can fail
-- (types of keys, memory, rights) fails at or before the XADD to the journal, or to the line, and what is written before
-- it changes no answer. What serves is one step from the line to the journal: a node that dies, or hears no answer,
-- leaves a line in which nobody was skipped, and the next one goes on behind whoever was served.

local ALREADY_ISSUED, NOT_OPEN, CLOSED, PAUSED, SOLD_OUT, WAITING, ISSUED = 1, 2, 3, 4, 5, 6, 7
local UNDECIDED = 0

local clock, backlog, wake, id, quarantine_for = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local want, limit, epoch_known, epoch_told, told = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local FIRST_USER = 11
local users, list, before_first = #ARGV - FIRST_USER + 1, ARGV, FIRST_USER - 1 -- user n is list[before_first + n]

local c, instead = campaign('terms_version', 'epoch', 'quantity', 'opens_at', 'closes_at', 'paused', 'closed',
  'in_force', 'issued', 'last_number', 'drained_through', 'decided_at', 'quarantined', 'quarantined_until', 'was_opens_at', 'was_closes_at',
  'opened_at', 'sold_out_at', 'closed_at', 'was_sold_out', 'line', 'run', 'frozen', 'ceiling')
if instead then return instead end
local older = unverified(c[22], c[23])
if older then return {older} end
if tonumber(c[2]) < epoch_known then return {'behind', c[2]} end
local terms_version, epoch, quantity, opens_at, closes_at = tonumber(c[1]), c[2], tonumber(c[3]), tonumber(c[4]), tonumber(c[5])
local paused, closed = c[6] == '1', c[7] == '1'
local in_force, issued, last_number, drained = tonumber(c[8]), tonumber(c[9]), tonumber(c[10]), tonumber(c[11])
if tonumber(epoch) == epoch_told and last_number < told then return {'unverified'} end -- it gave more, and has forgotten it
local decided_at, quarantined, quarantined_until = tonumber(c[12]), tonumber(c[13]), tonumber(c[14])
local was_opens_at, was_closes_at = tonumber(c[15]), tonumber(c[16])
local opened_at, sold_out_at, closed_at = tonumber(c[17]), tonumber(c[18]), tonumber(c[19])
local was_sold_out, line, ceiling, version = c[20] == '1', line_of(c[21]), tonumber(c[24]) or math.huge, c[25]

-- If the keys do not agree, or the ledger has numbers that were not given, something is
-- gone, and any decision would be a guess.
if redis.call('HLEN', holders_key) ~= in_force or last_number < drained or line and line.torn() then return {'lost'} end
-- Where nobody is in line, whoever serves it changes nothing.
local idle = want == 'serve' and (not line or line.waiting == 0)

-- The gate's time never goes back before an instant that the campaign has seen.
local now = tonumber(clock)
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local read = now -- what is quarantined goes by the clock: the gate's time stands still after that went back
if now < decided_at then now = decided_at end

-- While stock that came back is quarantined, it counts as in force, and a window that was
-- widened is still as narrow as it was. If something would be quarantined for longer than if it began
-- now, the clock went back: it begins now. What has left quarantine is forgotten, so that it is not
-- quarantined again.
local moved = false
if quarantined_until > read + quarantine_for then quarantined_until, moved = read + quarantine_for, true end
if read >= quarantined_until then
  moved = moved or quarantined > 0 or was_opens_at ~= nil or was_closes_at ~= nil or was_sold_out
  quarantined, was_opens_at, was_closes_at, was_sold_out = 0, nil, nil, false
else
  if was_opens_at and was_opens_at > (opens_at or 0) then opens_at = was_opens_at end
  if was_closes_at and was_closes_at < (closes_at or math.huge) then closes_at = was_closes_at end
end

local function phase(at)
  if opens_at and at < opens_at then return NOT_OPEN end
  if closes_at and at >= closes_at then return CLOSED end
  return ISSUED
end

local before_stock = phase(now)
if before_stock ~= NOT_OPEN and closed then before_stock = CLOSED end
if before_stock == ISSUED and paused then before_stock = PAUSED end
local is_open = before_stock == ISSUED
local direct = want == 'issue'
if direct then before_stock = (closed or closes_at and now >= closes_at) and CLOSED or ISSUED end

local may_issue = want == 'serve' and limit or users
if backlog ~= '' then may_issue = math.max(0, tonumber(backlog) - (last_number - drained)) end
may_issue = math.min(may_issue, math.max(0, ceiling - last_number)) -- the ledger knows by it what may have been given

-- Whoever is in line hears closed also before it opens.
local closed_since = (closed or closes_at and now >= closes_at) and math.min(closed_at or math.huge, closes_at or math.huge) or nil
if line and not idle then
  line.stands_by = line.waitlist and not was_sold_out
  line.ends(closed_since, in_force >= quantity, now)
end

-- Those next in line, as many as the pace lets through.
local next_tickets = {}
if want == 'serve' and not idle and before_stock == ISSUED and line.waiting > 0 then
  users = line.take(read, math.max(0, math.min(limit, quantity - in_force - quarantined, line.waiting, may_issue)))
  list, before_first = {}, 0
  local from, to = line.id(line.through + 1), whole(line.generation)
  for n, next in ipairs(users > 0 and redis.call('XRANGE', line_key, from, to, 'COUNT', whole(users)) or {}) do
    next_tickets[n], list[n] = tonumber(string.sub(next[1], string.find(next[1], '-', 1, true) + 1)), next[2][2]
  end
  if #list < users then return {'lost'} end
end

-- Read. A key of another type ends the script here, before the first write.
redis.call('XLEN', journal_key)
local function of_users(key)
  local found = {}
  each(list, before_first + 1, before_first + users, function(...)
    for _, entry in ipairs(redis.call('HMGET', key, ...)) do found[#found + 1] = entry end
  end)
  return found
end
local holds, tickets = of_users(holders_key), line and (want == 'serve' and {} or of_users(tickets_key))

-- A drained number is recorded unless its entry has a flag: see settle.lua.
local function recorded(entry) return unflagged(entry) and struct.unpack('>I6', entry) <= drained end

-- Decide.
local outcomes, entries, winners, pairs_of, new = {}, {}, {}, {}, {}
local places, joined, joined_pairs = {}, {}, {} -- joined has tickets, by user, and the users in their order
local stopped, over = {}, {} -- of tickets that ended before their turn: their ids, and users and entries
local suffix = struct.pack('>I7I4', now, direct and terms_version + DIRECT or terms_version)
local lined = line and want == 'claim' and (line.pace or line.waiting > 0)
-- Where nodes may still repeat sold_out, who joins here would hear there that they have not.
local taken = was_sold_out and in_force + quarantined or in_force

for n = 1, users do
  local user = list[before_first + n]
  local entry, outcome = holds[n], before_stock
  local ticket = line and (next_tickets[n] or joined[user] or line.live(tickets[n]))
  if want == 'leave' then
    outcome = ticket and WAITING or entry and ALREADY_ISSUED or tickets and tickets[n] and CLOSED or UNDECIDED
    idle = not ticket
  elseif entry then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = (recorded(entry) and '1' or '0') .. entry
  elseif new[user] then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = '0' .. new[user]
  elseif lined and ticket then
    outcome = WAITING
  elseif outcome == ISSUED and lined then
    if taken >= quantity and not line.stands_by then
      outcome = SOLD_OUT
    elseif line.waiting >= limit then
      outcome = UNDECIDED
    else
      outcome, ticket = WAITING, line.join()
      joined[user], joined[#joined + 1] = ticket, user
      joined_pairs[#joined_pairs + 1] = user
      joined_pairs[#joined_pairs + 1] = line.entry(ticket)
    end
  elseif outcome == ISSUED then
    if in_force + #winners + quarantined >= quantity then
      outcome = SOLD_OUT
    elseif #winners >= may_issue then
      outcome = UNDECIDED
    else
      winners[#winners + 1] = user
      new[user] = struct.pack('>I6', last_number + #winners) .. suffix
      if next_tickets[n] then new[user] = new[user] .. line.entry(ticket) end
      pairs_of[#pairs_of + 1] = user
      pairs_of[#pairs_of + 1] = new[user]
    end
  end
  outcomes[n] = outcome
  if line then
    if ticket and (want ~= 'claim' and outcome == ISSUED or want == 'serve' or want == 'leave') then
      if want == 'serve' then
        line.through = ticket
      else
        stopped[#stopped + 1] = line.id(ticket)
        over[#over + 1] = user
        over[#over + 1] = line.entry(ticket) .. OVER
      end
      line.stop(want ~= 'leave')
    end
    if outcome == ISSUED then line.ends(nil, in_force + #winners >= quantity, now) end
    if want == 'issue' then places[n] = line.waiting
    elseif want == 'leave' then places = {line.last_of(tickets[n])}
    elseif outcome == WAITING or outcome == ISSUED then places[#places + 1] = ticket end
  end
end

-- Write.
local won = #winners
local fields = {}
local opens = not opened_at and is_open and (want ~= 'serve' and want ~= 'leave' or users > 0)
local changed = line and line.moved()
if won > 0 or opens or changed or phase(now) ~= phase(decided_at) then fields = {'decided_at', whole(now)} end
if opens then
  fields[3], fields[4] = 'opened_at', whole(now)
end
if moved then
  for _, f in ipairs({'quarantined', whole(quarantined), 'quarantined_until', whole(quarantined_until),
    'was_opens_at', was_opens_at and whole(was_opens_at) or '', 'was_closes_at', was_closes_at and whole(was_closes_at) or '',
    'was_sold_out', was_sold_out and '1' or '0'}) do
    fields[#fields + 1] = f
  end
end
if #fields > 0 and not idle then
  -- Who leaves a full Redis makes room: the first write is one that needs no memory.
  if want == 'leave' then redis.call('HDEL', campaign_key, '') end
  local kept = redis.pcall('HSET', campaign_key, unpack(fields))
  -- Without memory holders are still found, and refusals are still true.
  local failed = type(kept) == 'table' and kept.err
  if failed and (won > 0 or #joined > 0 or not string.find(kept.err, 'OOM', 1, true)) then return kept end
  if failed then changed = false -- whoever looks next finds the generation ended as well
  elseif opens then opened_at = now end
end
changed = changed and not idle
if changed and (#stopped > 0 or users > 0 and want == 'serve') then -- may it? These find nothing.
  redis.call('XDEL', line_key, '0-0')
  redis.call('XTRIM', line_key, 'MINID', '0')
  redis.call('HDEL', tickets_key, '')
end
if won > 0 or changed and line.ended then
  local entry = {'format', '1', 'epoch', epoch, 'at', whole(now), 'terms', whole(terms_version)}
  local function add(name, value) entry[#entry + 1], entry[#entry + 2] = name, value end
  if won > 0 then
    add('first', whole(last_number + 1))
    add('users', table.concat(winners, '\n'))
    if direct then add('direct', '1') end
  end
  if line then line.tell(add, want == 'serve' and won > 0 and places) end
  local appended = redis.pcall('XADD', journal_key, '*', unpack(entry))
  if type(appended) == 'table' and appended.err then return appended end
end
local first_joined = line and line.last - #joined
for n, user in ipairs(joined) do -- the first one may fail, and then nothing has changed
  redis.call('XADD', line_key, line.id(first_joined + n), 'user', user, 'at', whole(now))
end
each(joined_pairs, 1, #joined_pairs, function(...) redis.call('HSET', tickets_key, ...) end)
if won > 0 then
  for from = 1, #pairs_of, CHUNK do
    redis.call('HSET', holders_key, unpack(pairs_of, from, math.min(from + CHUNK - 1, #pairs_of)))
  end
  if in_force + won >= quantity then sold_out_at = sold_out_at or now end
  redis.call('HSET', campaign_key, 'in_force', whole(in_force + won), 'issued', whole(issued + won),
    'last_number', whole(last_number + won), 'sold_out_at', sold_out_at and whole(sold_out_at) or '')
end
if changed then line.keep(stopped, want == 'serve' and list or {}, over) end
if won > 0 then redis.pcall('PUBLISH', wake, id) end -- a hint: who may not publish is found by the recorders' own clock

local reply = {'decided', table.concat(outcomes), whole(last_number + 1), whole(now), version, whole(terms_version), epoch,
  opens_at and whole(opens_at) or '', closes_at and whole(closes_at) or '', read < quarantined_until and '1' or '0', whole(in_force + won),
  opened_at and whole(opened_at) or '', sold_out_at and whole(sold_out_at) or '', closed_at and whole(closed_at) or '', entries}
if line then
  local full = backlog ~= '' and last_number + won - drained >= tonumber(backlog) or last_number + won >= ceiling and in_force + won < quantity
  reply[16] = line.field()
  reply[17] = table.concat({whole(quantity), paused and '1' or '0', whole(quarantined), whole(quarantined_until), whole(read), full and '0' or '1', whole(#joined), line.stands_by and '1' or '0'}, ' ')
  reply[18], reply[19], reply[20] = line.why or '', places, want == 'serve' and winners or {}
end
return reply
