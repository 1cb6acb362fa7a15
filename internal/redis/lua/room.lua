-- Tells how much memory the server has, and how much is in a campaign's keys. It writes nothing.
--
-- Returns {'room', maxmemory in bytes, 0: as much as there is, used_memory, holders, people in line, users who have or had a ticket}

local c, instead = campaign()
if not c then return instead end
local memory = redis.call('INFO', 'memory')
local function bytes(name) return string.match(memory, '\n' .. name .. ':(%d+)') or '0' end
local function count(command, key) -- of a key of another type, or none: 0
  local n = redis.pcall(command, key)
  return type(n) == 'number' and whole(n) or '0'
end
return {'room', bytes('maxmemory'), bytes('used_memory'), count('HLEN', holders_key), count('XLEN', line_key), count('HLEN', tickets_key)}
