-- Tries each command that firstcome uses on keys, and returns those that this user may not run. It writes nothing:
-- Redis checks rights first. Each command is then refused for another reason, or finds nothing to do.
--
-- KEYS  1 the instance's name, a string, 2 a key that is not there, in the same slot
-- ARGV  1 a channel
-- Returns the commands' names.

local missing = {}
local function try(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then
    local message = string.lower(answer.err)
    if string.find(message, 'noperm', 1, true) or string.find(message, "can't run this command", 1, true) or string.find(message, 'no permission', 1, true) then
      missing[#missing + 1] = (...)
    end
  end
  return answer
end

local name, none, channel = KEYS[1], KEYS[2], ARGV[1]
try('TIME')
try('INFO', 'replication')
try('RENAME', none, none)
try('GET', name)
try('SET', none, '', 'XX')
try('HSET', none, 'a', '1', 'b') -- no value
try('HMGET', none, 'a')
try('HGET', none, 'a')
try('HLEN', none)
try('HDEL', none, 'a')
try('HSCAN', none, '0')
try('XGROUP', 'CREATE', none, 'g', '0') -- no stream
try('XADD', none, 'NOMKSTREAM', '*', 'a', '1')
try('XLEN', none)
try('XRANGE', none, '-', '+')
try('XACK', none, 'g', '1-1')
try('XDEL', none, '1-1')
try('XTRIM', none, 'MINID', '1')
try('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', none, '>')
try('XAUTOCLAIM', none, 'g', 'c', '0', '0-0')
try('XCLAIM', none, 'g', 'c', '0', '1-1')
try('PUBLISH', channel, '')
try('UNLINK', none)
return missing
