-- Notes that a campaign was verified after its server restarted: then it decides again, in the same epoch.
--
-- ARGV  1 the run that decided last, 2 the run that was verified, 3 the epoch, 4 the version, 5 the last number
-- Returns {word}
--   'verified'
--   'moved'     it is not what was verified any more

local c, instead = campaign('run', 'frozen', 'epoch', 'last_number')
if instead then return instead end
if c[2] or c[1] ~= ARGV[1] or this_run() ~= ARGV[2] or c[3] ~= ARGV[3] or c[5] ~= ARGV[4] or c[4] ~= ARGV[5] then return {'moved'} end
redis.call('HSET', campaign_key, 'run', ARGV[2])
return {'verified'}
