-- Issues coupons to the next users in line: as many as the pace and the stock allow now. Line, coupons and journal change in one step: if the
-- node dies, or its answer is lost, the next call goes on after the last user who was served, and skips nobody.
--
-- ARGV     as in claim.lua; limit is how many users are served at most, and there is no list
-- Returns  {'part_gone'} or {'behind', epoch}, as claim.lua does, or
--   {'idle', …}  nobody is in line, and nothing was written. The values are those of state_after in decide.lua
--   {'served', quantity, paused, stands_by, quarantined, quarantined_until, clock, room, ended, tickets, users, …},
--   where … are the values of state_after in decide.lua, and
--     quarantined, quarantined_until  how much stock is quarantined, and until when by the clock
--     room     0 if the backlog or the ceiling allows no further number, else 1
--     ended    why the generation ended in this script: sold_out, closed, or '' if it did not
--     tickets  the tickets that were served, in ascending order
--     users    their users

local g, instead = open()
if instead then return instead end
local line = g.line
if not line or line.waiting == 0 then return {'idle', state_after(g)} end
local may_issue, is_open = room(g, tonumber(a.limit)), before_stock(g) == ISSUED
end_line(g)

local batch, turns = new_batch(g), {}
batch.tickets = {}
if is_open and line.waiting > 0 then
  local stock = g.quantity - g.in_force - g.quarantined
  local count = line.take(g.clock, math.max(0, math.min(tonumber(a.limit), stock, line.waiting, may_issue)))
  local from, to = line.id(line.through + 1), integer(line.generation)
  for n, entry in ipairs(count > 0 and redis.call('XRANGE', line_key, from, to, 'COUNT', integer(count)) or {}) do
    turns[n], batch.served[n] = tonumber(string.sub(entry[1], string.find(entry[1], '-', 1, true) + 1)), entry[2][2]
  end
  if #turns < count then return {'part_gone'} end
end

redis.call('XLEN', journal_key) -- a key of another type ends the script here, before the first write
local holds, in_force = look_up(holders_key, batch.served, 1), g.in_force

for n, ticket in ipairs(turns) do
  local user = batch.served[n]
  local wins = not holds[n] and not batch.entries[user]
  if wins then
    issue(g, batch, user, line.entry(ticket))
    batch.tickets[#batch.tickets + 1] = ticket
  end
  line.through = ticket
  line.stop(true)
  if wins then line.ends(nil, in_force + #batch.winners >= g.quantity, g.now) end
end

local failed = write(g, batch, is_open and #turns > 0)
if failed then return failed end
local full = a.backlog ~= '' and g.last_number - g.drained_through >= tonumber(a.backlog) or g.last_number >= g.ceiling and g.in_force < g.quantity
return {'served', 'quantity', g.quantity, 'paused', g.paused and 1 or 0, 'stands_by', line.stands_by and 1 or 0,
  'quarantined', g.quarantined, 'quarantined_until', g.quarantined_until, 'clock', g.clock, 'room', full and 0 or 1, 'ended', line.why or '',
  'tickets', batch.tickets, 'users', batch.winners, state_after(g)}
