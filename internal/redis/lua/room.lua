-- Reads how much memory the server has, and how much is in a campaign's keys. It writes nothing.
--
-- Returns {'room', maxmemory, used_memory, holders, line, tickets}
--   maxmemory, used_memory  in bytes. maxmemory is 0 if there is no limit
--   holders, line, tickets  how many entries each key has; 0 if it is of another type

local c, instead = campaign()
if not c then return instead end
local memory = redis.call('INFO', 'memory')
local function bytes(name) return string.match(memory, '\n' .. name .. ':(%d+)') or '0' end
local function count(command, key)
  local n = redis.pcall(command, key)
  return type(n) == 'number' and n or 0
end
return {'room', 'maxmemory', bytes('maxmemory'), 'used_memory', bytes('used_memory'), 'holders', count('HLEN', holders_key),
  'line', count('XLEN', line_key), 'tickets', count('HLEN', tickets_key)}
