-- Deletes a campaign's keys, if they are of the campaign with a marker.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), unrecorded (set)
-- ARGV  1 marker
-- Returns {'forgotten'}, or {'left'}: there is no campaign, or another ledger's; or {'newer', layout}:
-- its keys have a layout that this script does not know, and may be others besides. What is
-- there without a campaign says of no ledger that it is its own.

local LAYOUT = 1 -- the newest layout of a campaign's keys that this script knows: see layout.go

local c = redis.call('HMGET', KEYS[1], 'marker', 'layout')
if (tonumber(c[2] or 1) or math.huge) > LAYOUT then return {'newer', c[2]} end
if c[1] ~= ARGV[1] then return {'left'} end
redis.call('UNLINK', unpack(KEYS))
return {'forgotten'}
