-- Deletes a campaign's keys. Returns {'forgotten'}, also if there are none.

local c, instead = campaign()
if not c then return instead end -- a newer layout may have other keys besides
redis.call('UNLINK', unpack(KEYS))
return {'forgotten'}
