-- Deletes a campaign's keys, if they are of the campaign with a marker.
--
-- ARGV  1 marker
-- Returns {'forgotten'}, or {'left'}: there is no campaign, or another ledger's. What is
-- there without a campaign says of no ledger that it is its own.

local c, instead = campaign('marker')
if not c then return instead end -- a newer layout may have other keys besides
if c[1] ~= ARGV[1] then return {'left'} end
redis.call('UNLINK', unpack(KEYS))
return {'forgotten'}
