-- Tries each command that firstcome uses on keys, and returns those that this user may not run.
--
-- KEYS  1 a key that nothing else uses, 2 another in the same slot
-- ARGV  1 a channel
-- Returns the commands' names. What it writes is deleted by itself.

local missing = {}
local function try(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then
    local message = string.lower(answer.err)
    if string.find(message, 'noperm', 1, true) or string.find(message, "can't run this command", 1, true) or string.find(message, 'no permission', 1, true) then
      missing[#missing + 1] = (...)
    end
  end
end

local hash, stream, channel = KEYS[1], KEYS[2], ARGV[1]
try('TIME')
try('HSET', hash, 'a', '1')
try('HMGET', hash, 'a')
try('HGET', hash, 'a')
try('HLEN', hash)
try('HDEL', hash, 'a')
try('SADD', hash, '1')
try('SCARD', hash)
try('SISMEMBER', hash, '1')
try('SMISMEMBER', hash, '1')
try('SREM', hash, '1')
try('XGROUP', 'CREATE', stream, 'g', '0', 'MKSTREAM')
try('XADD', stream, '*', 'a', '1')
try('XLEN', stream)
try('XRANGE', stream, '-', '+')
try('XACK', stream, 'g', '1-1')
try('XDEL', stream, '1-1')
try('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', stream, '>')
try('XAUTOCLAIM', stream, 'g', 'c', '0', '0-0')
try('XCLAIM', stream, 'g', 'c', '0', '1-1')
try('XINFO', 'CONSUMERS', stream, 'g')
try('HSCAN', hash, '0')
try('SMEMBERS', hash)
try('PUBLISH', channel, '')
try('UNLINK', hash)
try('DEL', hash, stream)
return missing
