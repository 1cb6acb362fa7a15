-- Loads through which tickets of a feed users left into an attempt's keys. Where a later one is there already, that stays.
--
-- KEYS  behind those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  users, each with the generation and the ticket behind it
-- Returns {'marked'}

local tickets_to = KEYS[8]
local users = {}
for n = 1, #ARGV, 3 do users[#users + 1] = ARGV[n] end
local known = redis.call('HMGET', tickets_to, unpack(users))
for n, user in ipairs(users) do
  local generation, ticket, later = tonumber(ARGV[3 * n - 1]), tonumber(ARGV[3 * n]), true
  if known[n] then
    local of, through = struct.unpack('>I6I6', known[n])
    later = generation > of or generation == of and ticket > through
  end
  if later then redis.call('HSET', tickets_to, user, struct.pack('>I6I6', generation, ticket) .. OVER) end
end
return {'marked'}
