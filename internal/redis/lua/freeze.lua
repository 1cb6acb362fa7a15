-- Freezes a campaign for a rebuild. From then on no script decides, changes or settles anything of it, until replace.lua replaces it or a
-- later attempt freezes it. A campaign that is not here is frozen, too.
--
-- ARGV  attempt  of the rebuild
-- Returns one of
--   {'frozen', run, version, terms_version, last_number, decided_at, opened_at, sold_out_at, closed_at, line, epoch, drained_through}
--     run      of the server
--     The other values are fields of the campaign's hash; a missing field is ''
--   {'superseded'}  a later attempt has frozen the campaign, or this one has replaced its keys

local attempt = tonumber(arguments().attempt)
local c, instead = campaign('attempt', 'terms_version', 'last_number', 'decided_at', 'opened_at', 'sold_out_at', 'closed_at', 'line', 'epoch', 'drained_through', 'attempts')
if not c then return instead end
if attempt < (tonumber(c.frozen) or 0) or attempt <= (tonumber(c.attempt) or 0) then return {'superseded'} end
redis.call('HDEL', campaign_key, '') -- this write needs no memory: see settle.lua
local attempts = c.attempts or ''
if attempt ~= tonumber(c.frozen) then attempts = attempts .. ' ' .. integer(attempt) end
attempts = string.sub(attempts, -16 * 17) -- the last 16, so that removeLoaded finds their keys
redis.call('HSET', campaign_key, 'frozen', integer(attempt), 'attempts', attempts)
return {'frozen', 'run', this_run(), 'version', c.version or '', 'terms_version', c.terms_version or '',
  'last_number', c.last_number or '', 'decided_at', c.decided_at or '', 'opened_at', c.opened_at or '',
  'sold_out_at', c.sold_out_at or '', 'closed_at', c.closed_at or '', 'line', c.line or '', 'epoch', c.epoch or '', 'drained_through', c.drained_through or ''}
