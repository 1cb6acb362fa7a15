-- Decides a direct issue to each of the users, in their order: it takes stock, but neither the line nor a turn of the pace. It also issues
-- before the campaign opens and while it is paused: see firstcome.Campaign.Direct. The tickets of users who get a coupon end.
--
-- ARGV     as in claim.lua; limit means nothing
-- Returns  as claim.lua does. tickets is instead how many users are in line after each of the users

local g, instead = open()
if instead then return instead end
local line, users, may_issue = g.line, #ARGV - FIRST_USER + 1, room(g, #ARGV - FIRST_USER + 1)
local outcome_before = closed_since(g, g.closes_at) and CLOSED or ISSUED
end_line(g)

redis.call('XLEN', journal_key) -- a key of another type ends the script here, before the first write
local holds, tickets = look_up(holders_key, ARGV, FIRST_USER), line and look_up(tickets_key, ARGV, FIRST_USER)

local batch = new_batch(g, true)
local in_force, stock = g.in_force, g.quantity - g.in_force - g.quarantined
local outcomes, entries, in_line = {}, {}, {}
for n = 1, users do
  local user, entry, outcome = ARGV[FIRST_USER - 1 + n], holds[n], outcome_before
  if entry then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = holding(g, entry)
  elseif batch.entries[user] then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = '0' .. batch.entries[user]
  elseif outcome == ISSUED then
    if #batch.winners >= stock then
      outcome = SOLD_OUT
    elseif #batch.winners >= may_issue then
      outcome = UNDECIDED
    else
      issue(g, batch, user)
      local ticket = line and line.live(tickets[n])
      if ticket then stop(line, batch, user, ticket, true) end
      if line then line.ends(nil, in_force + #batch.winners >= g.quantity, g.now) end
    end
  end
  outcomes[n] = outcome
  if line then in_line[n] = line.waiting end
end

local failed = write(g, batch, before_stock(g) == ISSUED)
if failed then return failed end
return decided(g, outcomes, entries, 0, in_line)
