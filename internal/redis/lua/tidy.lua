-- Deletes the names of recorders that are gone from a journal's group: of those that
-- have no entries and were silent for long. What a recorder has is never deleted with its
-- name, and one that comes back is made known by its reading.
--
-- ARGV  1 the recorders' group, 2 for how many milliseconds they were silent, 3 the campaign's marker
-- Returns {'tidy'}. A user who may not look deletes nothing, nor who has another
-- ledger's marker.

local group, silent, marker = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local c, instead = campaign('marker')
if not c then return instead end
if c[1] ~= marker then return {'tidy'} end
local recorders = redis.pcall('XINFO', 'CONSUMERS', journal_key, group)
if recorders.err then return {'tidy'} end
for _, r in ipairs(recorders) do
  -- {'name', name, 'pending', how many, 'idle', milliseconds, …}
  if r[4] == 0 and r[6] >= silent then redis.pcall('XGROUP', 'DELCONSUMER', journal_key, group, r[2]) end
end
return {'tidy'}
