-- Notes that a user left the line that a feed keeps: from then on their tickets of a generation up to one are passed over.
--
-- ARGV  1 the user, 2 the generation, 3 the ticket
-- Returns {word}
--   'lost'    part of what the gate knew of the campaign is gone
--   'unfed'   no feed keeps the line
--   'served'  the user holds a coupon
--   'over'    the ticket has ended, or they left before with a later one
--   'left'    they left now
--
-- As in settle.lua, the first write is one that needs no memory.

local user, generation, ticket = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local c, instead = campaign('in_force', 'last_number', 'drained_through', 'line', 'run', 'frozen')
if instead then return instead end
local older = unverified(c[5], c[6])
if older then return {older} end
local line = line_of(c[4])
if redis.call('HLEN', holders_key) ~= tonumber(c[1]) or tonumber(c[2]) < tonumber(c[3]) or line and line.torn() then return {'lost'} end
if not (line and line.feed) then return {'unfed'} end
if redis.call('HGET', holders_key, user) then return {'served'} end
local before = redis.call('HGET', tickets_key, user)
if not line.first or generation ~= line.generation or ticket <= line.through or ticket <= line.left(before) then return {'over'} end

redis.call('HDEL', campaign_key, '')
redis.call('HSET', tickets_key, user, line.entry(ticket) .. OVER)
if not before then
  line.marks = line.marks + 1
  redis.call('HSET', campaign_key, 'line', line.field())
end
return {'left'}
