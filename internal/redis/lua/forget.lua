-- Deletes a campaign's keys. Returns {'forgotten'}, also if there are none.

local c, instead = campaign()
if not c then return instead end -- a newer layout may have more keys
redis.call('UNLINK', unpack(KEYS))
return {'forgotten'}
