-- Applies one numbered change of a campaign: change v after v-1, and once. create.lua applies change 1.
--
-- ARGV  clock           microseconds, or '' for the server's clock
--       quarantine_for  how long returned stock is quarantined, in microseconds
--       witness         the least that the gate must know of the campaign: see older in line.lua
--       version         of the change
--       kind            terms, pause, resume, close or void
--       ceiling         the highest number that may be issued from now on, or '' if it stays: see docs/adr/0034
--       of terms: quantity, opens_at and closes_at ('' for none), pace ('' for none), waitlist (1 or 0), log: topic, partition and first
--                 offset of the line's log, with spaces between, or '' for none. A line that has a log keeps it; terms: all terms as a text, which
--                 is kept for the ledger, and not read; before: the change is refused if this number or a later one was given; 0 for never
--       of void:  number, user, burns (1 if its stock does not come back: the quantity is lowered by one)
--       of resume: codes, a text of the lists of imported codes, which is kept for the ledger, and not read
-- Returns one of
--   {'applied', epoch}  the change is applied, now or earlier
--   {'refused', epoch}  the quantity was below the coupons in force, or a number was given that must not be, now or earlier. The version
--                 is used up
--   {'behind', epoch}  see older in line.lua
--   {'gap', version}  earlier changes are missing; version is that of the last applied one
--   {'part_gone'}          the gate should have the campaign, but has it not, or only a part of it
--   {'new'}           change 1 of a campaign that this gate does not have: create.lua may make it
--
-- Whatever can fail fails before the first write that counts. The first write needs no memory, because changes are also how an operator helps a
-- full Redis.

local a = arguments()
local version, quarantine_for, was_refused = tonumber(a.version), tonumber(a.quarantine_for), 'refused:' .. a.version
local g, instead = state()
if not g or instead and g.frozen then return instead end
local entries = redis.call('XLEN', journal_key)
if instead then
  local leftovers = entries + redis.call('HLEN', holders_key) + redis.call('XLEN', line_key) + redis.call('HLEN', tickets_key)
  return {version == 1 and a.kind == 'terms' and leftovers == 0 and 'new' or 'part_gone'}
end
local why, line, known = unverified(g), g.line, tonumber(g.version)
if why then return {why} end
local forgotten = older(g, line, a.witness)
if forgotten then return forgotten end
if part_gone(g, line) then return {'part_gone'} end
if version <= known then return {redis.call('HGET', campaign_key, was_refused) == '1' and 'refused' or 'applied', 'epoch', g.epoch} end
if version > known + 1 then return {'gap', 'version', g.version} end
redis.call('HDEL', campaign_key, '') -- this write needs no memory
read_clock(g, a.clock, quarantine_for)

-- While nothing is quarantined and the window is open, claims are told sold_out.
local is_sold_out = g.in_force >= g.quantity and not (line and line.pace and line.waitlist)

-- report writes an entry of the journal about the line, once. It may fail, so it comes before the other writes.
local reported = false
local function report()
  if reported then return end
  reported = true
  redis.call('HSET', campaign_key, 'decided_at', integer(g.decided_at)) -- changes nothing. It fails here if this user may not run it
  local entry, add = begin_entry(g)
  line.report(add)
  redis.call('XADD', journal_key, '*', unpack(entry))
end

-- send_away ends the line's generation, if the campaign has been closed since a time, or if its coupons of a quantity are all in force.
local function send_away(since, quantity)
  if not line then return end
  line.stands_by = line.waitlist and not g.was_sold_out
  line.ends(since, g.in_force >= quantity, g.now)
  if line.ended then report() end
end

-- write writes the change: fields and values, and what every change writes.
local function write(...)
  if line then line.keep({}, {}, {}) end
  if tonumber(a.ceiling) and tonumber(a.ceiling) > g.ceiling then redis.call('HSET', campaign_key, 'ceiling', a.ceiling) end
  redis.call('HSET', campaign_key, quarantine_fields(g))
  redis.call('HSET', campaign_key, 'version', a.version, 'decided_at', integer(g.now), ...)
  return {'applied', 'epoch', g.epoch}
end

local before = tonumber(a.before) or 0
if a.kind == 'terms' and (tonumber(a.quantity) < g.in_force or before > 0 and g.last_number >= before) then
  redis.call('HSET', campaign_key, 'version', a.version, was_refused, '1')
  return {'refused', 'epoch', g.epoch}
end
send_away(closed_since(g, narrowed(g, g.closes_at)), g.quantity) -- a window may have closed though no script has noticed

if a.kind == 'pause' then return write('paused', '1') end
if a.kind == 'resume' then return write('paused', '0', 'codes', a.codes) end
if a.kind == 'close' then
  send_away(g.now, g.quantity)
  return write('closed', '1', 'closed_at', integer(g.now))
end

if a.kind == 'void' then
  local entry = redis.call('HGET', holders_key, a.user)
  local quantity = a.burns == '1' and g.quantity - 1 or g.quantity
  if not entry or struct.unpack('>I6', entry) ~= tonumber(a.number) then return write('quantity', integer(quantity)) end
  if a.burns ~= '1' then
    begin_quarantine(g, quarantine_for, is_sold_out)
    g.quarantined = g.quarantined + 1
  end
  -- This write is first, because this user may not be allowed to run it. By itself it only delays claims.
  redis.call('HSET', campaign_key, 'quarantined_until', integer(g.quarantined_until))
  redis.call('HDEL', holders_key, a.user)
  if #entry >= SERVED then redis.call('HSET', tickets_key, a.user, string.sub(entry, ENTRY + 1, SERVED) .. OVER) end
  return write('in_force', integer(g.in_force - 1), 'quantity', integer(quantity))
end

if a.kind ~= 'terms' then return redis.error_reply('ERR firstcome: no change is of the kind ' .. a.kind) end

local quantity, opens_at, closes_at, pace = tonumber(a.quantity), tonumber(a.opens_at), tonumber(a.closes_at), tonumber(a.pace)

-- Nodes may still repeat not_open or closed. So a window that opens earlier, or that has closed and opens again, keeps its earlier limits
-- during the quarantine.
local was_opens_at, was_closes_at = math.max(g.opens_at or 0, g.was_opens_at or 0), narrowed(g, g.closes_at)
local opens_earlier = g.now < was_opens_at and (opens_at or 0) < was_opens_at
local opens_again = g.now >= was_closes_at and (closes_at or math.huge) > was_closes_at
if opens_earlier or opens_again or quantity > g.quantity or is_sold_out and a.waitlist == '1' then
  begin_quarantine(g, quarantine_for, is_sold_out)
end
if opens_earlier or opens_again then
  g.was_opens_at = was_opens_at > 0 and was_opens_at or nil
  g.was_closes_at = was_closes_at < math.huge and was_closes_at or nil
end
g.quarantined = math.max(0, g.quarantined + (quantity - g.quantity)) -- in this order no sum is above 2^53

local paced_before = line and line.pace
if line then line.pace, line.waitlist = pace, a.waitlist == '1'
elseif pace then line = line_of(new_line(a)) end
if line and line.log == '' and a.log ~= '' then line.log = ' ' .. a.log .. ' ' .. integer(line.generation) end
send_away(closed_since(g, narrowed(g, closes_at)) and g.now, quantity)
if paced_before and not line.pace and line.waiting > 0 then report() end -- a node that starts finds the line by the ledger only
return write('terms', a.terms, 'quantity', integer(quantity), 'opens_at', a.opens_at, 'closes_at', a.closes_at, 'terms_version', a.version,
  'sold_out_at', g.sold_out_at and integer(g.sold_out_at) or quantity <= g.in_force and integer(g.now) or '')
