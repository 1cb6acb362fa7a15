-- Deletes the names of recorders that are gone from a journal's group: of those that
-- have no entries and were silent for long. What a recorder has is never deleted with its
-- name, and one that comes back is made known by its reading.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), unrecorded (set)
-- ARGV  1 the recorders' group, 2 for how many milliseconds they were silent, 3 the campaign's marker
-- Returns {'tidy'}. A user who may not look deletes nothing, nor who has another
-- ledger's marker or does not know the layout of the keys.

local journal_key, group, silent, marker = KEYS[3], ARGV[1], tonumber(ARGV[2]), ARGV[3]

local LAYOUT = 1 -- the newest layout of a campaign's keys that this script knows: see layout.go

local c = redis.call('HMGET', KEYS[1], 'marker', 'layout')
if (tonumber(c[2] or 1) or math.huge) > LAYOUT or c[1] ~= marker then return {'tidy'} end
local recorders = redis.pcall('XINFO', 'CONSUMERS', journal_key, group)
if recorders.err then return {'tidy'} end
for _, r in ipairs(recorders) do
  -- {'name', name, 'pending', how many, 'idle', milliseconds, …}
  if r[4] == 0 and r[6] >= silent then redis.pcall('XGROUP', 'DELCONSUMER', journal_key, group, r[2]) end
end
return {'tidy'}
