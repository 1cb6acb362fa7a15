-- Applies one numbered change of a campaign: change v after v-1, once. Change 1 makes the campaign.
--
-- ARGV  1 the gate's time in microseconds, or '' for the server's own clock
--       2 how long returned stock is quarantined, in microseconds
--       3 the change's version, 4 its kind: terms, pause, resume, close or void
--       of terms: 5 quantity, 6 opens_at, 7 closes_at ('' for none), 8 the epoch of a new campaign,
--       9 the recorders' group, 10 until when, in microseconds, a new campaign may be made,
--       or '' for not at all, 11 the pace, '' for none, 12 waitlist: 1 or 0, 13 the topic, the partition and the first offset of the
--       line's log, with spaces between, '' for none. A line that has a log keeps it
--       of void: 5 number, 6 user
--       The last one is the highest number that may be given from then on: see docs/adr/0034; '' for any
-- Returns {word, …}
--   'applied'   it is applied, now or before
--   'refused'   the quantity was below what is in force, now or then: its version is used up
--   'gap', v    earlier changes are missing: v is the last
--   'lost'      the gate should know the campaign and does not, or not all of it
--   'new'       the campaign may be made: by the same with argument 10
--   'late'      the campaign was to be made earlier
--
-- As in claim.lua, whatever can fail does so at or before the first write; and that of a campaign
-- which is there needs no memory, as in settle.lua, because what an operator orders is how a full
-- Redis is helped. Only a new campaign has to find memory. An empty
-- journal that a campaign was not made with is no leftover: making it again is safe.
--
-- A campaign is never made twice, or its stock would be full again: its maker first asks
-- the ledger whether there was one; the time limits how long ago that may be.

local clock, quarantine_for, version, kind = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local c, instead = campaign('quantity', 'opens_at', 'closes_at', 'in_force', 'decided_at', 'quarantined', 'quarantined_until',
  'was_opens_at', 'was_closes_at', 'refused:' .. whole(version), 'last_number', 'drained_through', 'sold_out_at', 'closed', 'line', 'epoch', 'closed_at', 'was_sold_out', 'run', 'frozen', 'ceiling')
if not c or instead and c[20] then return instead end
local function new_line()
  local line = '1 0 0 0 0 0 ' .. (ARGV[11] == '' and '-' or ARGV[11]) .. ' ' .. ARGV[12]
  return ARGV[13] == '' and line or line .. ' ' .. ARGV[13] .. ' 1'
end
local holders = redis.call('HLEN', holders_key)
local leftovers = holders + redis.call('XLEN', journal_key)
local known = tonumber(c[22]) -- its version

local now = tonumber(clock)
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end

if not known then
  leftovers = leftovers + redis.call('XLEN', line_key) + redis.call('HLEN', tickets_key)
  if version ~= 1 or kind ~= 'terms' or leftovers > 0 then return {'lost'} end
  if ARGV[10] == '' then return {'new'} end
  if now > tonumber(ARGV[10]) then return {'late'} end
  local made = redis.pcall('XGROUP', 'CREATE', journal_key, ARGV[9], '0', 'MKSTREAM')
  if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
  redis.call('HSET', campaign_key, 'layout', whole(LAYOUT), 'epoch', ARGV[8],
    'version', '1', 'terms_version', '1', 'quantity', ARGV[5], 'opens_at', ARGV[6], 'closes_at', ARGV[7],
    'paused', '0', 'closed', '0', 'in_force', '0', 'issued', '0', 'last_number', '0', 'drained_through', '0',
    'decided_at', whole(now), 'quarantined', '0', 'quarantined_until', '0', 'was_opens_at', '', 'was_closes_at', '',
    'run', this_run(), 'ceiling', ARGV[#ARGV], 'was_sold_out', '0', 'opened_at', '', 'sold_out_at', tonumber(ARGV[5]) == 0 and whole(now) or '', 'closed_at', '')
  if ARGV[11] ~= '' then redis.call('HSET', campaign_key, 'line', new_line()) end
  return {'applied'}
end
local line = line_of(c[15])
local older = unverified(c[19], c[20])
if older then return {older} end
if holders ~= tonumber(c[4]) or tonumber(c[11]) < tonumber(c[12]) or line and line.torn() then return {'lost'} end
if version <= known then return {c[10] == '1' and 'refused' or 'applied'} end
if version > known + 1 then return {'gap', whole(known)} end
redis.call('HDEL', campaign_key, '') -- the write that needs no memory

local quantity, opens_at, closes_at, in_force = tonumber(c[1]), tonumber(c[2]), tonumber(c[3]), tonumber(c[4])
local read = now -- what is quarantined goes by the clock: see claim.lua
if now < tonumber(c[5]) then now = tonumber(c[5]) end

-- What an earlier change returned and is still quarantined.
local quarantined, quarantined_until, was_opens_at, was_closes_at, was_sold_out = 0, math.min(tonumber(c[7]), read + quarantine_for), nil, nil, false
if read < quarantined_until then
  quarantined, was_opens_at, was_closes_at, was_sold_out = tonumber(c[6]), tonumber(c[8]), tonumber(c[9]), c[18] == '1'
end
-- Claims hear sold_out in an open window while nothing is quarantined.
local is_sold_out = in_force >= quantity and not (line and line.pace and line.waitlist)

-- quarantine keeps back what comes back now. Since the first of it came back no lease was
-- granted, so what comes back meanwhile need not be quarantined for longer: else changes one
-- after the other would keep all of it back for ever. While nodes may repeat sold_out nobody joins a line.
local function quarantine()
  if read < quarantined_until then return end
  quarantined_until, was_sold_out = read + quarantine_for, is_sold_out
end

-- tell has the journal say what became of the line. It goes before all that may not be half done.
local told = false
local function tell()
  if told then return end
  told = true
  redis.call('HSET', campaign_key, 'decided_at', c[5]) -- may it?
  local entry = {'format', '1', 'epoch', c[16], 'at', whole(now)}
  line.tell(function(name, value) entry[#entry + 1], entry[#entry + 2] = name, value end)
  redis.call('XADD', journal_key, '*', unpack(entry))
end

-- send_away ends the line's generation if the campaign sends everybody in it away, as it is or as it shall be: a window that
-- has passed has done so, though nobody looked before the change. What the change itself closes has been so since now.
local function send_away(closed, closes_at, quantity, since)
  if not line then return end
  closes_at = math.min(closes_at or math.huge, was_closes_at or math.huge)
  line.stands_by = line.waitlist and not was_sold_out
  line.ends((closed or now >= closes_at) and (since or math.min(tonumber(c[17]) or math.huge, closes_at)) or nil, in_force >= quantity, now)
  if line.ended then tell() end
end

-- write keeps the change: pairs of fields and values beside those that every change has.
local function write(...)
  if line then line.keep({}, {}, {}) end
  if tonumber(ARGV[#ARGV]) and tonumber(ARGV[#ARGV]) > (tonumber(c[21]) or math.huge) then redis.call('HSET', campaign_key, 'ceiling', ARGV[#ARGV]) end
  redis.call('HSET', campaign_key, 'version', whole(version), 'decided_at', whole(now),
    'quarantined', whole(quarantined), 'quarantined_until', whole(quarantined_until),
    'was_opens_at', was_opens_at and whole(was_opens_at) or '', 'was_closes_at', was_closes_at and whole(was_closes_at) or '',
    'was_sold_out', was_sold_out and '1' or '0', ...)
  return {'applied'}
end

if kind == 'terms' and tonumber(ARGV[5]) < in_force then
  redis.call('HSET', campaign_key, 'version', whole(version), 'refused:' .. whole(version), '1')
  return {'refused'}
end
send_away(c[14] == '1', closes_at, quantity)

if kind == 'pause' then return write('paused', '1') end
if kind == 'resume' then return write('paused', '0') end
if kind == 'close' then
  send_away(true, closes_at, quantity, now)
  return write('closed', '1', 'closed_at', whole(now))
end

if kind == 'void' then
  local number, user = tonumber(ARGV[5]), ARGV[6]
  local entry = redis.call('HGET', holders_key, user)
  if not entry or struct.unpack('>I6', entry) ~= number then return write() end
  quarantine()
  quarantined = quarantined + 1
  -- This goes first: it may be refused for lack of rights, and alone it only delays.
  redis.call('HSET', campaign_key, 'quarantined_until', whole(quarantined_until))
  redis.call('HDEL', holders_key, user)
  if #entry >= SERVED then redis.call('HSET', tickets_key, user, string.sub(entry, ENTRY + 1, SERVED) .. OVER) end
  return write('in_force', whole(in_force - 1))
end

if kind ~= 'terms' then return redis.error_reply('ERR firstcome: no change is of the kind ' .. kind) end

local to_quantity, to_opens_at, to_closes_at = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

-- A window that opens earlier, or that has closed and opens again, stays as narrow as it
-- was for as long as stock is quarantined: else a node could still repeat not_open or closed.
local was = {opens_at = math.max(opens_at or 0, was_opens_at or 0), closes_at = math.min(closes_at or math.huge, was_closes_at or math.huge)}
local opens_earlier = now < was.opens_at and (to_opens_at or 0) < was.opens_at
local opens_again = now >= was.closes_at and (to_closes_at or math.huge) > was.closes_at
if opens_earlier or opens_again or to_quantity > quantity or is_sold_out and ARGV[12] == '1' then quarantine() end
if opens_earlier or opens_again then
  was_opens_at = was.opens_at > 0 and was.opens_at or nil
  was_closes_at = was.closes_at < math.huge and was.closes_at or nil
end
quarantined = math.max(0, quarantined + (to_quantity - quantity)) -- in this order no sum is above 2^53
if ARGV[11] ~= '' and not line then line = line_of(new_line()) end
local paced -- before
if line then
  paced, line.pace, line.waitlist = line.pace, tonumber(ARGV[11]), ARGV[12] == '1'
end
if line and line.log == '' and ARGV[13] ~= '' then line.log = ' ' .. ARGV[13] .. ' ' .. whole(line.generation) end
send_away(c[14] == '1', to_closes_at, to_quantity, now)
if paced and not line.pace and line.waiting > 0 then tell() end -- nodes that start look for a line here
local sold_out_at = tonumber(c[13]) and c[13] or to_quantity <= in_force and whole(now) or ''
return write('quantity', whole(to_quantity), 'opens_at', ARGV[6], 'closes_at', ARGV[7], 'terms_version', whole(version),
  'sold_out_at', sold_out_at)
