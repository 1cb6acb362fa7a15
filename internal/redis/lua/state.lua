-- The part that scripts share which decide or change a campaign: its state, and what the time means for it. Go sends it after line.lua.
--
-- Numbers and times are integers below 2^53, which Lua's numbers hold exactly. Only a window that ends after the year 2255 is rounded, by
-- some microseconds.

-- text prints a number, or '' for nil.
local function text(n) return n and integer(n) or '' end

-- state reads a campaign: its fields, with numbers as numbers, or nil where there is none. It returns the script's answer as campaign does. The
-- two lists have the fields in the same order.
local function state()
  local values, instead = fields('epoch', 'terms_version', 'quantity', 'opens_at', 'closes_at', 'paused', 'closed', 'in_force', 'issued', 'last_number',
    'drained_through', 'ceiling', 'decided_at', 'quarantined', 'quarantined_until', 'was_opens_at', 'was_closes_at', 'was_sold_out', 'opened_at',
    'sold_out_at', 'closed_at', 'line')
  if not values then return nil, instead end
  local version, _, frozen, run, epoch, terms_version, quantity, opens_at, closes_at, paused, closed, in_force, issued, last_number,
    drained_through, ceiling, decided_at, quarantined, quarantined_until, was_opens_at, was_closes_at, was_sold_out, opened_at,
    sold_out_at, closed_at, line = unpack(values)
  return {
    version = version, frozen = frozen, run = run, epoch = epoch, -- texts
    terms_version = tonumber(terms_version), quantity = tonumber(quantity), opens_at = tonumber(opens_at), closes_at = tonumber(closes_at),
    paused = paused == '1', closed = closed == '1', in_force = tonumber(in_force), issued = tonumber(issued), last_number = tonumber(last_number),
    drained_through = tonumber(drained_through), ceiling = tonumber(ceiling) or math.huge, decided_at = tonumber(decided_at),
    quarantined = tonumber(quarantined), quarantined_until = tonumber(quarantined_until), was_opens_at = tonumber(was_opens_at),
    was_closes_at = tonumber(was_closes_at), was_sold_out = was_sold_out == '1', opened_at = tonumber(opened_at),
    sold_out_at = tonumber(sold_out_at), closed_at = tonumber(closed_at), line = line_of(line),
  }, instead
end

-- read_clock adds the time to a campaign's state: g.clock is the clock in microseconds. g.now is the gate's time: the clock, but never before a
-- time at which the campaign was decided.
--
-- Stock that came back is quarantined until a time. Until then it counts as in force, and a window that was widened counts as it was before
-- (was_opens_at, was_closes_at), because nodes may still repeat earlier refusals. If the clock went back, a quarantine ends no later than one
-- that begins now. State that has left quarantine is forgotten, or it
-- would be quarantined again after the clock went back.
local function read_clock(g, clock, quarantine_for)
  g.clock = tonumber(clock) or server_time()
  g.now = math.max(g.clock, g.decided_at)
  local latest = g.clock + quarantine_for
  if g.quarantined_until > latest then g.quarantined_until, g.quarantine_moved = latest, true end
  g.in_quarantine = g.clock < g.quarantined_until
  if not g.in_quarantine and (g.quarantined > 0 or g.was_opens_at or g.was_closes_at or g.was_sold_out) then
    g.quarantined, g.was_opens_at, g.was_closes_at, g.was_sold_out, g.quarantine_moved = 0, nil, nil, false, true
  end
  if g.line then g.line.stands_by = g.line.waitlist and not g.was_sold_out end
end

-- begin_quarantine begins a quarantine, unless one is under way. During a quarantine nodes get no lease of a refusal, so no refusal can be
-- repeated for longer than the first quarantine lasts. If each change began it again, returned stock might never be issued again.
local function begin_quarantine(g, quarantine_for, is_sold_out)
  if not g.in_quarantine then g.in_quarantine, g.quarantined_until, g.was_sold_out = true, g.clock + quarantine_for, is_sold_out end
end

-- narrowed returns when a window closes: during a quarantine no later than before the change.
local function narrowed(g, closes_at) return math.min(closes_at or math.huge, g.was_closes_at or math.huge) end

-- quarantine_fields returns the fields of the campaign's hash about the quarantine, with their values.
local function quarantine_fields(g)
  return 'quarantined', integer(g.quarantined), 'quarantined_until', integer(g.quarantined_until), 'was_opens_at', text(g.was_opens_at),
    'was_closes_at', text(g.was_closes_at), 'was_sold_out', g.was_sold_out and '1' or '0'
end

-- closed_since returns since when the campaign is closed, given when its window closes, or nil.
local function closed_since(g, closes_at)
  if not g.closed and not (closes_at and g.now >= closes_at) then return nil end
  return math.min(g.closed_at or math.huge, closes_at or math.huge)
end

-- begin_entry begins an entry of the journal with fields and values. It returns the entry, and what adds a field to it.
local function begin_entry(g, ...)
  local entry = {'format', '1', 'epoch', g.epoch, 'at', integer(g.now), ...}
  return entry, function(name, value) entry[#entry + 1], entry[#entry + 2] = name, value end
end

