-- Notes how far a campaign is in the ledger, and is done with entries of its journal.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), unrecorded (set)
-- ARGV  1 the recorders' group, 2 the channel to tell, 3 the campaign's id
--       4 the number through which all are settled, 5 the epoch of that, or 0 if it is not said, 6 how many of them are
--       unrecorded; then those numbers, then the ids of the entries
-- Returns how many entries there were to delete.
--
-- It begins with a write that needs no memory, because it is what gives memory back; Redis
-- looks at memory before a script's first write only. Settled never goes back: neither does the
-- number nor the epoch, and of two sets of unrecorded numbers up to the same one the smaller is
-- the later, because a number that is settled can only become recorded.

local CHUNK = 1000 -- values that unpack() puts on Lua's stack, which has room for about 8,000
local SPELLED = 100 -- unrecorded numbers that fit in a message; of more, the reader asks

local campaign_key, journal_key, unrecorded_key = KEYS[1], KEYS[3], KEYS[4]
local group, channel, id, through, epoch, unrecorded = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local FIRST = 7
local first_entry = FIRST + unrecorded

local done = 0
for from = first_entry, #ARGV, CHUNK do
  local to = math.min(from + CHUNK - 1, #ARGV)
  redis.pcall('XACK', journal_key, group, unpack(ARGV, from, to)) -- the group may be gone
  done = done + redis.call('XDEL', journal_key, unpack(ARGV, from, to))
end

local before = redis.call('HMGET', campaign_key, 'settled', 'settled_epoch')
local settled, settled_epoch = tonumber(before[1]), tonumber(before[2] or '0')
if tonumber(epoch) == 0 then epoch = before[2] or '0' end
if not settled or tonumber(through) < settled or tonumber(epoch) < settled_epoch then return done end
local later = tonumber(through) > settled or tonumber(epoch) > settled_epoch
if not later and unrecorded >= redis.call('SCARD', unrecorded_key) then return done end

redis.call('DEL', unrecorded_key)
for from = FIRST, first_entry - 1, CHUNK do
  redis.call('SADD', unrecorded_key, unpack(ARGV, from, math.min(from + CHUNK - 1, first_entry - 1)))
end
redis.call('HSET', campaign_key, 'settled', through, 'settled_epoch', epoch)

local message = {id, through, epoch}
if unrecorded > SPELLED then
  message[4] = '*'
else
  for n = FIRST, first_entry - 1 do message[#message + 1] = ARGV[n] end
end
redis.pcall('PUBLISH', channel, table.concat(message, ' '))
return done
