-- Notes which campaign a ledger has made under an id, unless one is noted already.
--
-- KEYS  firstcome:created:LEDGER (hash): see createdKey
-- ARGV  1 the field, 2 the campaign's UID
-- Returns the UID of the campaign that is noted: this campaign's, or another one's

local noted = redis.call('HGET', KEYS[1], ARGV[1])
if noted then return noted end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return ARGV[2]
