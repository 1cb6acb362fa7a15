-- Has a generation of the line that a feed keeps begin.
--
-- ARGV  1 the feed, 2 the generation, 3 the offset of its first ticket
-- Returns {'lost'} if a part of what the gate knew is gone, {'unfed'} if no feed keeps the line, {'moved'} if another one does, or
--   {'line', the line's field, perhaps of a later generation, or of one that had begun}
--
-- The ledger says which generation begins, and where. It may be ahead of a gate that has not begun its own: then nobody
-- has a ticket of that one. As in settle.lua, the first write is one that needs no memory.

local feed, generation, first = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local c, instead = campaign('in_force', 'last_number', 'drained_through', 'line', 'run', 'frozen')
if instead then return instead end
local older = unverified(c[5], c[6])
if older then return {older} end
local line = line_of(c[4])
if redis.call('HLEN', holders_key) ~= tonumber(c[1]) or tonumber(c[2]) < tonumber(c[3]) or line and line.torn() then return {'lost'} end
if not (line and line.feed) then return {'unfed'} end
if line.feed ~= feed then return {'moved'} end
if not line.first and generation >= line.generation then
  line.generation, line.first = generation, first
  redis.call('HDEL', campaign_key, '')
  redis.call('HSET', campaign_key, 'line', line.field())
end
return {'line', line.field()}
