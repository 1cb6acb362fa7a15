-- Tells whether a campaign is over: nothing of it is under way, and none of its coupons is
-- issued any more unless a change or an epoch comes.
--
-- ARGV  1 the version and 2 the epoch that the ledger has of the campaign
--       3 the gate's time in microseconds, or '' for the server's own clock
--       4 the recorders' group, 5 the campaign's marker
-- Returns one of
--   {'open'}   it is not over, or of another version, epoch or ledger, or of a newer layout, or it cannot be told
--   {'busy'}   a recorder has entries that are not in the journal any more
--   {'over'}   it is over, and stays so wherever the clock goes
--
-- That the window has closed is seen by this script as by a claim: it is written down, so that
-- a clock which goes back does not open it again. No recorder has to be known of any more; one
-- that reads the journal all the same is made known by its reading.

local version, epoch, clock, group, marker = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local c = campaign('version', 'epoch', 'closed', 'closes_at', 'last_number', 'settled', 'decided_at', 'marker')
if not c then return {'open'} end
if c[1] ~= version or c[2] ~= epoch or c[8] ~= marker then return {'open'} end
if redis.call('XLEN', journal_key) > 0 or c[5] ~= c[6] then return {'open'} end

local now = tonumber(clock)
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local closes_at, decided_at = tonumber(c[4]), tonumber(c[7])
if now < decided_at then now = decided_at end
local past = closes_at and now >= closes_at
if c[3] ~= '1' and not past then return {'open'} end

local recorders = redis.pcall('XINFO', 'CONSUMERS', journal_key, group)
if recorders.err then
  -- A journal or a group that is gone has no recorders; what else it may be is an operator's business.
  local gone = string.find(recorders.err, 'NOGROUP', 1, true) or string.find(recorders.err, 'no such key', 1, true)
  if not gone then return {'open'} end
  recorders = {}
end
for _, r in ipairs(recorders) do
  if r[4] > 0 then return {'busy'} end -- {'name', name, 'pending', how many, …}
end

if past and decided_at < closes_at then
  local kept = redis.pcall('HSET', campaign_key, 'decided_at', whole(now))
  if type(kept) == 'table' and kept.err then return {'open'} end -- for lack of memory, say
end
for _, r in ipairs(recorders) do
  redis.pcall('XGROUP', 'DELCONSUMER', journal_key, group, r[2])
end
return {'over'}
