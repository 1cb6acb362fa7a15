-- Loads a page of users into a new line, in the order of their tickets. A log in Kafka says who they are.
--
-- KEYS  after those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  attempt     of the rebuild
--       generation  of the new line
--       the list: for each user, their id, their ticket, and the gate's time at which they were in line
-- Returns one of
--   {'seated'}
--   {'superseded'}  another attempt froze the campaign, or finished

local a, first = arguments()
local generation, line_to, tickets_to = tonumber(a.generation), KEYS[7], KEYS[8]

local c, instead = campaign()
if not c then return instead end
if tonumber(c.frozen) ~= tonumber(a.attempt) then return {'superseded'} end
local seats = {}
for n = first + 1, #ARGV, 3 do
  local user, ticket, at = ARGV[n], tonumber(ARGV[n + 1]), ARGV[n + 2]
  redis.call('XADD', line_to, integer(generation) .. '-' .. integer(ticket), 'user', user, 'at', at)
  seats[#seats + 1] = user
  seats[#seats + 1] = struct.pack('>I6I6', generation, ticket)
end
each(seats, 1, #seats, function(...) redis.call('HSET', tickets_to, ...) end)
return {'seated'}
