-- Tells whether a campaign may decide. It writes nothing.
--
-- Returns {word}
--   'stands'
--   'unverified'   see the prelude
--   'lost'         part of what the gate knew of it is gone: see claim.lua

local c, instead = campaign('run_id', 'frozen', 'in_force', 'last_number', 'drained_through', 'line')
if instead then return instead end
if unverified(c[1], c[2]) then return {'unverified'} end
local line = line_of(c[6])
if redis.call('HLEN', holders_key) ~= tonumber(c[3]) or tonumber(c[4]) < tonumber(c[5]) or line and line.torn() then return {'lost'} end
return {'stands'}
