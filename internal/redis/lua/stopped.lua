-- Tells what an unverified campaign is. It writes nothing.
--
-- Returns {'stopped', run that decided last, run of the server, 1 if it is frozen, epoch, version, last_number, drained_through, in_force,
--          holders, quantity, opens_at, closes_at, paused, closed, the last attempt at a rebuild, ceiling, closed_at, line, decided_at}. Fields that are not here are ''.

local c, instead = campaign('run', 'frozen', 'epoch', 'last_number', 'drained_through', 'in_force', 'quantity', 'opens_at', 'closes_at', 'paused', 'closed',
  'attempt', 'ceiling', 'closed_at', 'line', 'decided_at')
if not c or instead and not c[2] then return instead end
for n = 1, 17 do c[n] = c[n] or n ~= 2 and '' end
return {'stopped', c[1], this_run(), c[2] and '1' or '0', c[3], c[17], c[4], c[5], c[6], whole(redis.call('HLEN', holders_key)),
  c[7], c[8], c[9], c[10], c[11], whole(math.max(tonumber(c[12]) or 0, tonumber(c[2]) or 0)), c[13], c[14], c[15], c[16]}
