-- Says whether a campaign may decide. It writes nothing.
--
-- ARGV  witness  the least that the gate must know of the campaign: see older in line.lua
--       epoch, version, drained  what the ledger has of the campaign, or none of the three
-- Returns one of
--   {'intact'}         it may decide
--   {'ahead'}          one of the ledger's three values is higher here: the ledger has moved on since it was read, or was rolled back
--   {'ended', epoch}   the epoch here is lower, and nobody has frozen the campaign: this gate's epoch has ended
--   {'unverified'} or {'rebuilding'}  see the prelude; {'behind', epoch}, see older in line.lua
--   {'part_gone'}           a part of the campaign's keys is gone

local a = arguments()
local c, instead = campaign('in_force', 'last_number', 'drained_through', 'line', 'epoch')
if instead then return instead end
if a.epoch then
  local epoch = tonumber(a.epoch)
  if tonumber(c.epoch) > epoch or tonumber(c.version) > tonumber(a.version) or tonumber(c.drained_through) > tonumber(a.drained) then return {'ahead'} end
  if not c.frozen and tonumber(c.epoch) < epoch then return {'ended', 'epoch', c.epoch} end
end
local why, line = unverified(c), line_of(c.line)
if why then return {why} end
return older(c, line, a.witness) or {part_gone(c, line) and 'part_gone' or 'intact'}
