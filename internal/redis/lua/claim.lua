-- Decides one claim by each of the users, in order, by the rule firstcome.Decide,
-- and appends what it issues to the journal: all of it or nothing.
--
-- ARGV  1 the gate's time in microseconds, or '' for the server's own clock
--       2 how many numbers may be undrained, or '' for any; above, nothing is issued
--       3 the channel that wakes recorders, 4 the campaign's id
--       5 how long stock that came back cools, in microseconds
--       6 and following: the users
-- Returns one of
--   {'lost'}                           part of what the gate knew of it is gone
--   {'decided', outcomes, first, now, version, terms_version, epoch, opens_at, closes_at,
--    cooling, in_force, opened_at, sold_out_at, closed_at, {entry, …}}
--                                      all as they are behind the batch. outcomes has a digit for each user, 0 for not
--                                      decided because the backlog is full; the users
--                                      who were issued have the numbers from first on; of
--                                      those who hold there is an entry each, in order, with
--                                      1 before it if the ledger surely has it, else 0
--
-- Numbers and instants are whole and below 2^53, so Lua's doubles hold them. A window that ends after the year
-- 2255 is rounded to some microseconds, which the clock will not see. Everything that can fail
-- (types of keys, memory, rights) fails at or before the XADD, and what is written before
-- it changes no answer.

local ALREADY_ISSUED, NOT_OPEN, CLOSED, PAUSED, SOLD_OUT, WAITING, ISSUED = 1, 2, 3, 4, 5, 6, 7
local UNDECIDED = 0

local clock, backlog, wake, id, cool_for = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local FIRST_USER = 6
local users = #ARGV - FIRST_USER + 1

local c, instead = campaign('terms_version', 'epoch', 'quantity', 'opens_at', 'closes_at', 'paused', 'closed',
  'in_force', 'issued', 'last_number', 'drained_through', 'decided_at', 'cooling', 'cooling_until', 'was_opens_at', 'was_closes_at',
  'opened_at', 'sold_out_at', 'closed_at')
if instead then return instead end
local terms_version, epoch, quantity, opens_at, closes_at = tonumber(c[1]), c[2], tonumber(c[3]), tonumber(c[4]), tonumber(c[5])
local paused, closed = c[6] == '1', c[7] == '1'
local in_force, issued, last_number, drained = tonumber(c[8]), tonumber(c[9]), tonumber(c[10]), tonumber(c[11])
local decided_at, cooling, cooling_until = tonumber(c[12]), tonumber(c[13]), tonumber(c[14])
local was_opens_at, was_closes_at = tonumber(c[15]), tonumber(c[16])
local opened_at, sold_out_at, closed_at = tonumber(c[17]), tonumber(c[18]), tonumber(c[19])
local version = c[20]

-- If the keys do not agree, or the ledger has numbers that were not given, something is
-- gone, and any decision would be a guess.
if redis.call('HLEN', holders_key) ~= in_force or last_number < drained then return {'lost'} end

-- The gate's time never goes back before an instant that the campaign has seen.
local now = tonumber(clock)
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local read = now -- what cools goes by the clock: the gate's time stands still after that went back
if now < decided_at then now = decided_at end

-- While stock that came back cools, it counts as in force, and a window that was
-- widened is still as narrow as it was. If something would cool for longer than if it began
-- now, the clock went back: it begins now. What has cooled is forgotten, so that it does not
-- cool again.
local moved = false
if cooling_until > read + cool_for then cooling_until, moved = read + cool_for, true end
if read >= cooling_until then
  moved = moved or cooling > 0 or was_opens_at ~= nil or was_closes_at ~= nil
  cooling, was_opens_at, was_closes_at = 0, nil, nil
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

local may_issue = users
if backlog ~= '' then may_issue = math.max(0, tonumber(backlog) - (last_number - drained)) end

-- Read. A key of another type ends the script here, before the first write.
redis.call('XLEN', journal_key)
local holds = {}
each(FIRST_USER, #ARGV, function(...)
  for _, entry in ipairs(redis.call('HMGET', holders_key, ...)) do holds[#holds + 1] = entry end
end)

-- A drained number is recorded unless its entry has a flag: see settle.lua.
local function recorded(entry) return #entry == ENTRY and struct.unpack('>I6', entry) <= drained end

-- Decide.
local outcomes, entries, winners, pairs_of, new = {}, {}, {}, {}, {}
local suffix = struct.pack('>I7I4', now, terms_version)
for n = 1, users do
  local user = ARGV[FIRST_USER + n - 1]
  local entry, outcome = holds[n], before_stock
  if entry then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = (recorded(entry) and '1' or '0') .. entry
  elseif new[user] then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = '0' .. new[user]
  elseif outcome == ISSUED then
    if in_force + #winners + cooling >= quantity then
      outcome = SOLD_OUT
    elseif #winners >= may_issue then
      outcome = UNDECIDED
    else
      winners[#winners + 1] = user
      new[user] = struct.pack('>I6', last_number + #winners) .. suffix
      pairs_of[#pairs_of + 1] = user
      pairs_of[#pairs_of + 1] = new[user]
    end
  end
  outcomes[n] = outcome
end

-- Write.
local won = #winners
local fields = {}
local opens = not opened_at and before_stock == ISSUED
if won > 0 or opens or phase(now) ~= phase(decided_at) then fields = {'decided_at', whole(now)} end
if opens then
  fields[3], fields[4] = 'opened_at', whole(now)
end
if moved then
  for _, f in ipairs({'cooling', whole(cooling), 'cooling_until', whole(cooling_until),
    'was_opens_at', was_opens_at and whole(was_opens_at) or '', 'was_closes_at', was_closes_at and whole(was_closes_at) or ''}) do
    fields[#fields + 1] = f
  end
end
if #fields > 0 then
  local kept = redis.pcall('HSET', campaign_key, unpack(fields))
  -- Without memory holders are still found, and refusals are still true.
  local failed = type(kept) == 'table' and kept.err
  if failed and (won > 0 or not string.find(kept.err, 'OOM', 1, true)) then return kept end
  if opens and not failed then opened_at = now end
end
if won > 0 then
  local appended = redis.pcall('XADD', journal_key, '*', 'format', '1', 'epoch', epoch, 'at', whole(now),
    'terms', whole(terms_version), 'first', whole(last_number + 1), 'users', table.concat(winners, '\n'))
  if type(appended) == 'table' and appended.err then return appended end
  for from = 1, #pairs_of, CHUNK do
    redis.call('HSET', holders_key, unpack(pairs_of, from, math.min(from + CHUNK - 1, #pairs_of)))
  end
  if in_force + won >= quantity then sold_out_at = now end
  redis.call('HSET', campaign_key, 'in_force', whole(in_force + won), 'issued', whole(issued + won),
    'last_number', whole(last_number + won), 'sold_out_at', sold_out_at and whole(sold_out_at) or '')
  redis.pcall('PUBLISH', wake, id) -- a hint: who may not publish is found by the recorders' own clock
end

return {'decided', table.concat(outcomes), whole(last_number + 1), whole(now), version, whole(terms_version), epoch,
  opens_at and whole(opens_at) or '', closes_at and whole(closes_at) or '', read < cooling_until and '1' or '0', whole(in_force + won),
  opened_at and whole(opened_at) or '', sold_out_at and whole(sold_out_at) or '', closed_at and whole(closed_at) or '', entries}
