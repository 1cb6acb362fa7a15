-- Removes entries from a campaign's journal that went to the ledger, or to a topic, and notes how far the campaign is drained.
--
-- ARGV  1 the recorders' group, 2 the channel to tell, 3 the campaign's tag
--       4 the number up to which each is a coupon in the ledger, a dead letter or lost
--       5 the epoch of which this is, '' for whichever it is in, 6 the highest number that may be given in it
--       7 the number above which all dead letters up to 4 are among those that follow
--       8 how many dead letters follow; then the user and the number of each, then
--       the ids of the entries
-- Returns {'set', through}: the number up to which the campaign was drained before. Of an absent campaign the entries are
-- done with all the same. Or, and nothing is done then
--   {'other'}          the campaign is in another epoch, so these are no entries of this journal
--   {'untold', told}   of dead letters above told nothing was said here
--
-- drained_through stays below all that is in the journal here, and every dead letter up to it has a flag at its holder: whoever says a number
-- says all dead letters up to it that were not told before, in the same call. So a holder's drained number without a flag is recorded. A
-- flag is never taken away: what became of the dead letter only the ledger knows. Recorders may come in another order
-- than the ledger's answers: so what it said of numbers above the oldest entry is kept, in told_through. Where the ledger has numbers
-- that were never given here, this gate has lost its latest decisions: then drained_through says so at once,
-- by being above the last number, and nothing is decided or said to be recorded any more. The first
-- write is one that needs no memory, because this is what gives memory back; Redis looks at memory
-- before a script's first write only. What may fail comes before the entries are deleted.

local group, channel, tag, through = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local epoch, ceiling, above = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local FIRST_LETTER = 9
local first_entry = FIRST_LETTER + 2 * tonumber(ARGV[8])

local c, instead = campaign('drained_through', 'last_number', 'told_through', 'run', 'frozen', 'epoch', 'ceiling')
if not c then return instead end
if c[1] and epoch ~= '' and c[6] ~= epoch then return {'other'} end
local older = (c[1] or c[5]) and unverified(c[4], c[5])
if older then return {older} end
local drained, last_number = tonumber(c[1]), tonumber(c[2])
local told = math.max(tonumber(c[3]) or 0, drained or 0)
if drained and through > told and above > told then return {'untold', whole(told)} end

redis.call('HDEL', campaign_key, '')
for n = FIRST_LETTER, first_entry - 1, 2 do
  local entry = redis.call('HGET', holders_key, ARGV[n])
  if entry and unflagged(entry) and struct.unpack('>I6', entry) == tonumber(ARGV[n + 1]) then
    redis.call('HSET', holders_key, ARGV[n], entry .. FLAG)
  end
end
each(ARGV, first_entry, #ARGV, function(...)
  redis.pcall('XACK', journal_key, group, ...) -- the group may be gone
  redis.call('XDEL', journal_key, ...)
end)
if not drained then return {'set', '0'} end
if epoch ~= '' and ceiling > (tonumber(c[7]) or math.huge) then redis.call('HSET', campaign_key, 'ceiling', whole(ceiling)) end

if through > told then redis.call('HSET', campaign_key, 'told_through', whole(through)) end
through = math.max(through, told)
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', '1')[1]
if oldest and through <= last_number then
  local fields, first = oldest[2], 1 -- one that does not say its numbers may be about any
  for n = 1, #fields, 2 do
    if fields[n] == 'first' then first = tonumber(fields[n + 1]) or 1 end
  end
  through = math.min(through, first - 1)
end
if through > drained then
  redis.call('HSET', campaign_key, 'drained_through', whole(through))
  redis.pcall('PUBLISH', channel, tag .. ' ' .. whole(through))
end
return {'set', whole(drained)}
