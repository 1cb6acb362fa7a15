-- Looks at a campaign's journal at one instant. It writes nothing.
--
-- Returns {'there', last_number, drained_through, epoch, entries, id of the oldest or '', now}, all as text;
-- now is in milliseconds, as the ids of entries begin.

local c, instead = campaign('last_number', 'drained_through', 'epoch')
if instead then return instead end
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', '1')
local t = redis.call('TIME')
return {'there', c[1], c[2], c[3], tostring(redis.call('XLEN', journal_key)), oldest[1] and oldest[1][1] or '',
  whole(t[1] * 1000 + math.floor(t[2] / 1000))}
