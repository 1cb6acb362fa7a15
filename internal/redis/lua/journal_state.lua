-- Reads how far a campaign's journal is drained, in one step. It writes nothing.
--
-- Returns {'there', last_number, drained_through, epoch, entries, oldest, now}
--   entries  how many entries the journal has
--   oldest   the id of the oldest entry, or ''
--   now      the server's clock in milliseconds, with which ids of entries begin

local c, instead = campaign('last_number', 'drained_through', 'epoch')
if instead then return instead end
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', '1')[1]
return {'there', 'last_number', c.last_number, 'drained_through', c.drained_through, 'epoch', c.epoch, 'entries', redis.call('XLEN', journal_key),
  'oldest', oldest and oldest[1] or '', 'now', math.floor(server_time() / 1000)}
