-- Removes entries from a campaign's journal that the ledger, or a topic, has taken, and notes how far the campaign is drained.
--
-- ARGV  group    the recorders' group
--       channel  gets the campaign's tag and how far it is drained, if that has moved
--       tag      of the campaign: see keys.go
--       through  each number up to this one is a coupon in the ledger, a dead letter, or lost
--       epoch    for which the ledger says so, or '' for whichever epoch the campaign is in
--       of       the epoch that the entries name, or '' for the campaign's
--       ceiling  the highest number that may be issued in this epoch
--       above    a number. The caller believes that the gate has heard of every dead letter up to it, so the list has those above it, up to through
--       letters  how many dead letters the list has
--       the list: user and number of each dead letter, then the ids of the entries
-- Returns one of
--   {'set', through}  the number up to which the campaign was drained before. If there is no campaign, the entries are removed all the same
--   {'other'}         the campaign is in another epoch than the argument, so the answer is not about it. Only entries were removed
--   {'unknown_letters', through}  the gate knows all dead letters up to through, which is lower than the argument above. It may lack flags of those in
--                     between. Nothing was done
--
-- A holder whose number is drained and who has no flag is surely in the ledger (has.lua relies on it), because of three rules:
--   1. Each dead letter up to drained_through has a flag at its holder. A caller that raises through sends all dead letters up to it that the
--      gate was not told. A flag is never removed: what has become of a dead letter only the ledger knows.
--   2. drained_through is below each number that the journal has. Recorders may report in any order. So letters_known_through keeps how far the
--      ledger is, until the entries below are gone.
--   3. If the ledger has numbers that this gate never issued, the gate has lost its latest decisions. drained_through is then raised at once. It
--      is above last_number, and scripts decide nothing and are sure of nothing.
--
-- After a rebuild the journal may have other entries under the ids of entries that went with their epoch. So of entries that name another epoch than
-- the campaign's, only those are removed that still name it.
--
-- The first write needs no memory: settling is what frees memory, and Redis looks at memory before a script's first write only. Whatever may fail
-- comes before the entries are deleted.

local a, first = arguments()
local through, above = tonumber(a.through), tonumber(a.above)
local first_entry = first + 1 + 2 * tonumber(a.letters)

local c, instead = campaign('drained_through', 'last_number', 'letters_known_through', 'epoch', 'ceiling')
if not c then return instead end

-- field returns the last value of a field of an entry, or nil.
local function field(entry, name)
  local value
  for n = 1, #entry[2], 2 do
    if entry[2][n] == name then value = entry[2][n + 1] end
  end
  return value
end

-- remove removes the entries from the journal, and from the group.
local function remove()
  local ids, theirs = {}, a.of ~= '' and c.epoch and a.of ~= c.epoch
  for n = first_entry, #ARGV do
    local entry = theirs and redis.call('XRANGE', journal_key, ARGV[n], ARGV[n])[1]
    if not theirs or entry and field(entry, 'epoch') == a.of then ids[#ids + 1] = ARGV[n] end
  end
  each(ids, 1, #ids, function(...)
    redis.pcall('XACK', journal_key, a.group, ...) -- the group may be gone
    redis.call('XDEL', journal_key, ...)
  end)
end

if c.drained_through and a.epoch ~= '' and c.epoch ~= a.epoch then
  if c.frozen then return {unverified(c)} end -- the rebuild still needs the entries, if the ledger fails over and forgets that the epoch ended
  if a.of ~= '' then remove() end
  return {'other'}
end
local why = (c.drained_through or c.frozen) and unverified(c)
if why then return {why} end
local drained, last_number = tonumber(c.drained_through), tonumber(c.last_number)
local known = math.max(tonumber(c.letters_known_through) or 0, drained or 0)
if drained and through > known and above > known then return {'unknown_letters', 'through', known} end

redis.call('HDEL', campaign_key, '')
for n = first + 1, first_entry - 1, 2 do
  local user, entry = ARGV[n], redis.call('HGET', holders_key, ARGV[n])
  if entry and unflagged(entry) and struct.unpack('>I6', entry) == tonumber(ARGV[n + 1]) then
    redis.call('HSET', holders_key, user, entry .. FLAG)
  end
end
remove()
if not drained then return {'set', 'through', 0} end
if a.epoch ~= '' and tonumber(a.ceiling) > (tonumber(c.ceiling) or math.huge) then redis.call('HSET', campaign_key, 'ceiling', a.ceiling) end

if through > known then redis.call('HSET', campaign_key, 'letters_known_through', integer(through)) end
through = math.max(through, known)
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', '1')[1]
if oldest and through <= last_number then
  local number = tonumber(field(oldest, 'first')) or 1 -- an entry that does not say its numbers may be about any
  through = math.min(through, number - 1)
end
if through > drained then
  redis.call('HSET', campaign_key, 'drained_through', integer(through))
  redis.pcall('PUBLISH', a.channel, a.tag .. ' ' .. integer(through))
end
return {'set', 'through', drained}
