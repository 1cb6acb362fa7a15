-- Loads a page of those who are in line by its log into new keys, in the order of their tickets.
--
-- KEYS  behind those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  1 the attempt, 2 the generation; 3 and following: of each a user, their ticket, and the gate's time at which they were in line
-- Returns {word}
--   'seated'
--   'outdone'  another attempt froze the campaign, or finished

local attempt, generation = tonumber(ARGV[1]), tonumber(ARGV[2])
local line_to, tickets_to = KEYS[7], KEYS[8]

local c, instead = campaign('frozen')
if not c then return instead end
if tonumber(c[1]) ~= attempt then return {'outdone'} end
local pairs_of = {}
for n = 3, #ARGV, 3 do
  local user, ticket, at = ARGV[n], tonumber(ARGV[n + 1]), ARGV[n + 2]
  redis.call('XADD', line_to, whole(generation) .. '-' .. whole(ticket), 'user', user, 'at', at)
  pairs_of[#pairs_of + 1] = user
  pairs_of[#pairs_of + 1] = struct.pack('>I6I6', generation, ticket)
end
each(pairs_of, 1, #pairs_of, function(...) redis.call('HSET', tickets_to, ...) end)
return {'seated'}
