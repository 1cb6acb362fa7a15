-- Looks at a campaign's journal at one instant. It writes nothing.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), unrecorded (set)
-- ARGV  1 marker, which must be the campaign's
-- Returns {'absent'}, {'mismatch', instance, secret, marker}, {'newer', layout} (which this script does not know) or {'there', last_number, settled, epoch, entries, id of the oldest or '', now},
-- all as text; now is in milliseconds, as the ids of entries begin.

local LAYOUT = 1 -- the newest layout of a campaign's keys that this script knows: see layout.go

local c = redis.call('HMGET', KEYS[1], 'last_number', 'settled', 'epoch', 'marker', 'instance', 'secret', 'layout')
if (tonumber(c[7] or 1) or math.huge) > LAYOUT then return {'newer', c[7]} end
if not c[1] then return {'absent'} end
if c[4] ~= ARGV[1] then return {'mismatch', c[5] or '', c[6] or '', c[4] or ''} end
local oldest = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', '1')
local t = redis.call('TIME')
return {'there', c[1], c[2], c[3], tostring(redis.call('XLEN', KEYS[3])), oldest[1] and oldest[1][1] or '',
  string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))}
