-- Tells whether a campaign may decide. It writes nothing.
--
-- ARGV  1 an epoch, and 2 the highest number of it that the gate told this node
--       and, or not: 3 the epoch, 4 the version and 5 the drained number of the ledger
-- Returns
--   {'stands'}
--   {'ahead'}          one of these is higher here: the ledger has gone on since, or it is older
--   {'behind', epoch}  the epoch here is lower, though nobody has frozen the campaign: this gate is older
--   {'unverified'} or {'rebuilding'}  see the prelude
--   {'lost'}           part of what the gate knew of it is gone: see claim.lua

local c, instead = campaign('run', 'frozen', 'in_force', 'last_number', 'drained_through', 'line', 'epoch')
if instead then return instead end
if ARGV[3] and (tonumber(c[7]) > tonumber(ARGV[3]) or tonumber(c[8]) > tonumber(ARGV[4]) or tonumber(c[5]) > tonumber(ARGV[5])) then return {'ahead'} end
if ARGV[3] and not c[2] and tonumber(c[7]) < tonumber(ARGV[3]) then return {'behind', c[7]} end
local older = unverified(c[1], c[2]) or c[7] == ARGV[1] and tonumber(c[4]) < tonumber(ARGV[2]) and 'unverified'
if older then return {older} end
local line = line_of(c[6])
if redis.call('HLEN', holders_key) ~= tonumber(c[3]) or tonumber(c[4]) < tonumber(c[5]) or line and line.torn() then return {'lost'} end
return {'stands'}
