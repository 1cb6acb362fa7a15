-- Freezes a campaign for a rebuild: from then on no script decides, changes or settles anything of it, until switch.lua replaces it
-- or a later attempt freezes it. A campaign that is not here is frozen too.
--
-- ARGV  1 the attempt
-- Returns
--   {'frozen', run, version, decided_at, opened_at, sold_out_at, closed_at, line, epoch, drained_through}   what was here; of an absent campaign ''
--   {'outdone'}                                                                        a later attempt was here, or this one has switched

local attempt = tonumber(ARGV[1])
local c, instead = campaign('frozen', 'attempt', 'decided_at', 'opened_at', 'sold_out_at', 'closed_at', 'line', 'epoch', 'drained_through', 'attempts')
if not c then return instead end
if attempt < (tonumber(c[1]) or 0) or attempt <= (tonumber(c[2]) or 0) then return {'outdone'} end
redis.call('HDEL', campaign_key, '') -- the write that needs no memory
local froze = c[10] or ''
if attempt ~= tonumber(c[1]) then froze = froze .. ' ' .. whole(attempt) end
redis.call('HSET', campaign_key, 'frozen', whole(attempt), 'attempts', string.sub(froze, -16 * 17)) -- the last 16, of which removeLoaded removes the keys
return {'frozen', this_run(), c[11] or '', c[3] or '', c[4] or '', c[5] or '', c[6] or '', c[7] or '', c[8] or '', c[9] or ''}
