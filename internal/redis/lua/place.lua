-- Reads a campaign's line at one instant, and who a user is in it. It writes nothing.
--
-- ARGV  1 the gate's time in microseconds, or '' for the server's own clock
--       2 a user, or nothing
-- Returns {'lost'} if a part of what the gate knew is gone, {'unverified'} or {'rebuilding'} if what is here may be an older state, in which somebody has not joined
-- yet or is still in line, or
--   {'there', the line's field or '', past, the user's holder entry or '', their live ticket or '', the clock,
--    quantity, opens_at, closes_at, paused, closed, in_force, decided_at, quarantined, quarantined_until, was_opens_at, was_closes_at,
--    closed_at, was_sold_out, when who is next in line joined or '', which is read only if no user is named, epoch}
--   past has a generation in each line of text, the last one first: see line.lua

local c, instead = campaign('quantity', 'opens_at', 'closes_at', 'paused', 'closed', 'in_force', 'decided_at', 'quarantined',
  'quarantined_until', 'was_opens_at', 'was_closes_at', 'line', 'past', 'last_number', 'drained_through', 'closed_at', 'was_sold_out', 'run', 'frozen', 'epoch')
if instead then return instead end
local older = unverified(c[18], c[19])
if older then return {older} end
local line = line_of(c[12])
if redis.call('HLEN', holders_key) ~= tonumber(c[6]) or tonumber(c[14]) < tonumber(c[15]) or line and line.torn() then return {'lost'} end
local user, clock = ARGV[2], ARGV[1]
local entry, ticket, joined = '', '', ''
if user then
  entry = redis.call('HGET', holders_key, user) or ''
  local own = line and redis.call('HGET', tickets_key, user)
  local live = line and line.live(own)
  if live then ticket = whole(live) end
elseif line and line.waiting > 0 then
  local next = redis.call('XRANGE', line_key, line.id(line.through + 1), whole(line.generation), 'COUNT', '1')[1]
  joined = next and next[2][4] or ''
end
if clock == '' then
  local t = redis.call('TIME')
  clock = whole(t[1] * 1000000 + t[2])
end
return {'there', c[12] or '', c[13] or '', entry, ticket, clock,
  c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[16], c[17], joined, c[20]}
