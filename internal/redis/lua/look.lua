-- Looks at a campaign's journal at one instant. It writes nothing.
--
-- ARGV  1 marker, which must be the campaign's
-- Returns {'absent'}, {'mismatch', instance, secret, marker} or {'there', last_number, settled, epoch, entries, id of the oldest or '', now},
-- all as text; now is in milliseconds, as the ids of entries begin.

local c, instead = campaign('last_number', 'settled', 'epoch', 'marker', 'instance', 'secret')
if not c then return instead end
if not c[1] then return {'absent'} end
if c[4] ~= ARGV[1] then return {'mismatch', c[5] or '', c[6] or '', c[4] or ''} end
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', '1')
local t = redis.call('TIME')
return {'there', c[1], c[2], c[3], tostring(redis.call('XLEN', journal_key)), oldest[1] and oldest[1][1] or '',
  whole(t[1] * 1000 + math.floor(t[2] / 1000))}
