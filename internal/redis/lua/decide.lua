-- The part that scripts share which issue coupons or end tickets: claim, issue, serve and leave. Go sends it after state.lua.
--
-- The order in each script is: read, decide, write. Whatever may fail (key types, memory, rights) fails before the first write that changes
-- an answer, because Lua does not undo writes.

local ALREADY_ISSUED, CLOSED, NOT_OPEN, PAUSED, SOLD_OUT, WAITING, ISSUED = 1, 2, 3, 4, 5, 6, 7 -- firstcome.Outcome
local UNDECIDED = 0

-- The arguments, which claim.lua describes. They come without names, because names would make a batch of one claim some 5 % slower.
local a = {
  clock = ARGV[1], backlog = ARGV[2], wake = ARGV[3], id = ARGV[4], quarantine_for = ARGV[5], limit = ARGV[6], witness = ARGV[7],
}
local FIRST_USER = 8

-- open reads a campaign that may decide, or returns the script's answer. g.opens_at and g.closes_at are as claims see them.
local function open()
  local g, instead = state()
  if instead then return nil, instead end
  local why = unverified(g)
  if why then return nil, {why} end
  local forgotten = older(g, g.line, a.witness)
  if forgotten then return nil, forgotten end
  if part_gone(g, g.line) then return nil, {'part_gone'} end
  read_clock(g, a.clock, tonumber(a.quarantine_for))
  if g.was_opens_at and g.was_opens_at > (g.opens_at or 0) then g.opens_at = g.was_opens_at end
  if g.was_closes_at and g.was_closes_at < (g.closes_at or math.huge) then g.closes_at = g.was_closes_at end
  return g
end

-- phase returns the outcome of the window at a time. While a window is quarantined it may end before it opens: then it is closed.
local function phase(g, at)
  if g.closes_at and at >= g.closes_at then return CLOSED end
  if g.opens_at and at < g.opens_at then return NOT_OPEN end
  return ISSUED
end

-- before_stock returns the outcome of a claim now if there were stock.
local function before_stock(g)
  local outcome = g.closed and CLOSED or phase(g, g.now)
  return outcome == ISSUED and g.paused and PAUSED or outcome
end

-- end_line ends the line's generation, if the campaign closed or sold out though no script has noticed yet.
local function end_line(g)
  if g.line then g.line.ends(closed_since(g, g.closes_at), g.in_force >= g.quantity, g.now) end
end

-- room returns how many numbers may be issued, at most wanted. It keeps the limit of undrained numbers, and the ceiling, by which the ledger
-- knows which numbers may have been issued.
local function room(g, wanted)
  if a.backlog ~= '' then wanted = math.max(0, tonumber(a.backlog) - (g.last_number - g.drained_through)) end
  return math.min(wanted, math.max(0, g.ceiling - g.last_number))
end

-- look_up returns the values that a hash has of the users in a list, from an index on.
local function look_up(key, list, from)
  local found = {}
  each(list, from, #list, function(...)
    for _, value in ipairs(redis.call('HMGET', key, ...)) do found[#found + 1] = value end
  end)
  return found
end

-- holding returns a holder's entry for the answer: 1 precedes it if the coupon is surely in the ledger, else 0. A drained number is in the
-- ledger unless its entry has a flag: see settle.lua.
local function holding(g, entry)
  return (unflagged(entry) and struct.unpack('>I6', entry) <= g.drained_through and '1' or '0') .. entry
end

-- new_batch returns what a script decides and has not written yet.
local function new_batch(g, direct)
  return {
    direct = direct, -- the coupons are issued directly
    suffix = struct.pack('>I7I4', g.now, direct and g.terms_version + DIRECT or g.terms_version), -- of the winners' entries in holders
    winners = {}, entries = {}, -- users who are issued coupons, in the order of numbers, and each one's entry in holders
    holders = {}, -- both, for HSET
    tickets = nil, -- of the winners, if they were served
    joined = {}, seats = {}, -- users who join the line, in the order of tickets; and with their entries in tickets, for HSET
    ids = {}, over = {}, -- tickets that end before their turn: entries of the line; and users with their entries in tickets, for HSET
    served = {}, -- users whose tickets end by their turn
  }
end

-- issue gives a user the next number. ticket is the entry of the user's ticket, if it was its turn.
local function issue(g, batch, user, ticket)
  local n = #batch.winners + 1
  local entry = struct.pack('>I6', g.last_number + n) .. batch.suffix .. (ticket or '')
  batch.winners[n], batch.entries[user] = user, entry
  batch.holders[2 * n - 1], batch.holders[2 * n] = user, entry
end

-- stop ends the ticket of a user before its turn.
local function stop(line, batch, user, ticket, got_coupon)
  batch.ids[#batch.ids + 1] = line.id(ticket)
  batch.over[#batch.over + 1] = user
  batch.over[#batch.over + 1] = line.entry(ticket) .. OVER
  line.stop(got_coupon)
end

-- write writes all that the script decided. If it returns an error, no decision counts: at most the campaign's clock, its opening and its
-- quarantine were written. opens is true if the campaign is open and users asked for its coupons.
local function write(g, batch, opens)
  local line, won, joined, fields = g.line, #batch.winners, #batch.joined, {}
  local moved = line and line.moved()
  opens = opens and not g.opened_at
  if won > 0 or opens or moved or phase(g, g.now) ~= phase(g, g.decided_at) then fields = {'decided_at', integer(g.now)} end
  if opens then fields[3], fields[4] = 'opened_at', integer(g.now) end
  if g.quarantine_moved then
    for _, f in ipairs({quarantine_fields(g)}) do fields[#fields + 1] = f end
  end
  if #fields > 0 then
    local kept = redis.pcall('HSET', campaign_key, unpack(fields))
    local failed = type(kept) == 'table' and kept.err
    -- If Redis is full, users who hold a coupon still get their answer, and so do users who are refused.
    if failed and (won > 0 or joined > 0 or not string.find(failed, 'OOM', 1, true)) then return kept end
    if failed then moved = false -- the next script finds the end of the generation again
    elseif opens then g.opened_at = g.now end
  end
  if moved and (#batch.ids > 0 or #batch.served > 0) then -- these change nothing. They fail here if this user may not run them
    redis.call('XDEL', line_key, '0-0')
    redis.call('XTRIM', line_key, 'MINID', '0')
    redis.call('HDEL', tickets_key, '')
  end
  if won > 0 or moved and line.ended then
    local entry, add
    if won == 0 then entry, add = begin_entry(g)
    else entry, add = begin_entry(g, 'terms', integer(g.terms_version), 'first', integer(g.last_number + 1), 'users', table.concat(batch.winners, '\n')) end
    if batch.direct and won > 0 then add('direct', '1') end
    if line then line.report(add, won > 0 and batch.tickets) end
    local appended = redis.pcall('XADD', journal_key, '*', unpack(entry))
    if type(appended) == 'table' and appended.err then return appended end
  end
  for n, user in ipairs(batch.joined) do -- the first XADD may fail, and then nothing has changed
    redis.call('XADD', line_key, line.id(line.last - joined + n), 'user', user, 'at', integer(g.now))
  end
  if joined > 0 then each(batch.seats, 1, #batch.seats, function(...) redis.call('HSET', tickets_key, ...) end) end
  if won > 0 then
    each(batch.holders, 1, #batch.holders, function(...) redis.call('HSET', holders_key, ...) end)
    g.in_force, g.issued, g.last_number = g.in_force + won, g.issued + won, g.last_number + won
    if g.in_force >= g.quantity then g.sold_out_at = g.sold_out_at or g.now end
    redis.call('HSET', campaign_key, 'in_force', integer(g.in_force), 'issued', integer(g.issued), 'last_number', integer(g.last_number),
      'sold_out_at', text(g.sold_out_at))
  end
  if moved then line.keep(batch.ids, batch.over, batch.served) end
  if won > 0 then redis.pcall('PUBLISH', a.wake, a.id) end -- only a hint: recorders look by themselves, too
end

-- state_after returns names and values for the answer: the campaign as claims see it after the script.
local function state_after(g)
  return 'epoch', g.epoch, 'version', g.version, 'last_number', g.last_number, 'now', g.now, 'line', g.line and g.line.field() or '',
    'terms_version', g.terms_version, 'opens_at', g.opens_at or '', 'closes_at', g.closes_at or '', 'in_quarantine', g.in_quarantine and 1 or 0, 'in_force', g.in_force
end

-- decided returns the answer of claim.lua and issue.lua, which claim.lua describes.
local function decided(g, outcomes, entries, joined, tickets)
  local line, digits, opened_at, sold_out_at, closed_at = g.line, table.concat(outcomes), g.opened_at or '', g.sold_out_at or '', g.closed_at or ''
  if not line then
    return {'decided', 'outcomes', digits, 'opened_at', opened_at, 'sold_out_at', sold_out_at, 'closed_at', closed_at,
      'entries', entries, state_after(g)}
  end
  return {'decided', 'outcomes', digits, 'opened_at', opened_at, 'sold_out_at', sold_out_at,
    'closed_at', closed_at, 'entries', entries, 'joined', joined, 'tickets', tickets, 'quantity', g.quantity, 'paused', g.paused and 1 or 0,
    'stands_by', line.stands_by and 1 or 0, state_after(g)}
end

