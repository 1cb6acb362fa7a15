-- Notes how far a campaign is in the ledger, and is done with entries of its journal.
--
-- ARGV  1 the recorders' group, 2 the channel to tell, 3 the campaign's tag
--       4 the number through which all are settled, 5 the epoch of that, or 0 if it is not said
--       6 the ledger's order of what changed in the set, 7 the order since which all that changed is told
--       8 how many numbers became unrecorded, 9 how many were and are no more, 10 how many are other
--       coupons in the ledger; then those of 8, of 9, of 10, then the ids of the entries
-- Returns {'set', order} of the set afterwards. If that is below 7, nothing was done: what changed in between is
-- missing. Of an absent campaign the entries are done with all the same.
--
-- What was given twice goes into the set in the same call as its entry leaves the journal, and stays in it.
-- Neither the number nor the epoch ever goes back, and of the set the ledger's order says what is later. Its first
-- write is one that needs no memory, because it is what gives memory back; Redis looks at memory
-- before a script's first write only.

local SPELLED = 100 -- unrecorded numbers that fit in a message; of more, the reader asks

local group, channel, tag = ARGV[1], ARGV[2], ARGV[3]
local through, epoch, order, since = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local FIRST = 11
local first_recorded = FIRST + tonumber(ARGV[8])
local first_twice = first_recorded + tonumber(ARGV[9])
local first_entry = first_twice + tonumber(ARGV[10])

local before, instead = campaign('settled', 'settled_epoch', 'letters_order')
if not before then return instead end
local settled, settled_epoch, known = tonumber(before[1]), tonumber(before[2] or '0'), tonumber(before[3] or '0')
if settled and known < since then return {'set', whole(known)} end

redis.call('SREM', unrecorded_key, '')
each(first_entry, #ARGV, function(...)
  redis.pcall('XACK', journal_key, group, ...) -- the group may be gone
  redis.call('XDEL', journal_key, ...)
end)
if not settled then return {'set', whole(order)} end
local added = 0
if order > known then
  each(first_recorded, first_twice - 1, function(...) redis.call('SREM', unrecorded_key, ...) end)
  each(FIRST, first_recorded - 1, function(...) redis.call('SADD', unrecorded_key, ...) end)
end
each(first_twice, first_entry - 1, function(...) added = added + redis.call('SADD', unrecorded_key, ...) end)
if through <= settled and epoch <= settled_epoch and order <= known and added == 0 then return {'set', whole(known)} end
through, epoch, order = math.max(through, settled), math.max(epoch, settled_epoch), math.max(order, known)
redis.call('HSET', campaign_key, 'settled', whole(through), 'settled_epoch', whole(epoch), 'letters_order', whole(order))

local message = {tag, whole(through), whole(epoch), whole(order)}
if redis.call('SCARD', unrecorded_key) > SPELLED then
  message[5] = '*'
else
  for _, number in ipairs(redis.call('SMEMBERS', unrecorded_key)) do message[#message + 1] = number end
end
redis.pcall('PUBLISH', channel, table.concat(message, ' '))
return {'set', whole(order)}
