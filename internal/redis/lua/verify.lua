-- Notes that a campaign was verified after its server restarted. It then decides again, in the same epoch.
--
-- ARGV  was, is      the run that decided last, and the run that was verified
--       epoch, version, last_number  of the campaign as it was verified
-- Returns one of
--   {'verified'}
--   {'moved'}  the campaign has changed since it was verified

local a = arguments()
local c, instead = campaign('epoch', 'last_number')
if instead then return instead end
if c.frozen or c.run ~= a.was or this_run() ~= a.is then return {'moved'} end
if c.epoch ~= a.epoch or c.version ~= a.version or c.last_number ~= a.last_number then return {'moved'} end
redis.call('HSET', campaign_key, 'run', a.is)
return {'verified'}
