-- Decides a claim by each of the users, in their order, by the rule firstcome.Decide. It issues coupons and appends them to the journal, or,
-- if the campaign has a pace, lets users join the line.
--
-- ARGV  1 clock           microseconds, or '' for the server's clock
--       2 backlog         how many numbers may be undrained, or '' for no limit. No coupon is issued beyond it
--       3 wake            the channel that wakes recorders. It gets the campaign's id
--       4 id              the campaign's id
--       5 quarantine_for  how long returned stock is quarantined, in microseconds
--       6 limit           how many users may be in line
--       7 witness         the least that the gate must know of the campaign: see older in line.lua
--       8 and following: the users
-- Returns one of
--   {'part_gone'}           a part of the campaign's keys is gone
--   {'behind', epoch}  see older in line.lua: this gate's epoch has ended, and another gate decides
--   {'decided', outcomes, opened_at, sold_out_at, closed_at, entries, epoch, version, last_number, now, line, terms_version, opens_at, closes_at,
--    in_quarantine, in_force}, and if there is a line joined, tickets, quantity, paused, stands_by: all as of the end of the script
--     line           the hash field line, or '' if the campaign never had a pace
--     outcomes       a digit for each user: firstcome.Outcome, or 0 if the claim was not decided because the backlog or the line is full
--     in_quarantine  1 if stock is quarantined, else 0
--     entries        for each user who already holds a coupon: their entry in holders. 1 precedes it if the coupon is surely in the ledger,
--                    else 0
--     joined         how many users joined the line
--     tickets        the ticket of each user who waits
--     stands_by      1 if users may join the line while all coupons are in force, else 0
-- If the script fails, it has decided nothing.

local g, instead = open()
if instead then return instead end
local line, limit, users = g.line, tonumber(a.limit), #ARGV - FIRST_USER + 1
local refused, may_issue = before_stock(g), room(g, users)
end_line(g)

redis.call('XLEN', journal_key) -- a key of another type ends the script here, before the first write
local holds, tickets = look_up(holders_key, ARGV, FIRST_USER), line and look_up(tickets_key, ARGV, FIRST_USER)

local batch = new_batch(g)
local winners, issued, new = batch.winners, batch.entries, batch.joined
local in_force, stock = g.in_force, g.quantity - g.in_force - g.quarantined
local lined = line and (line.pace or line.waiting > 0)
-- Nobody joins the line while a node may still repeat sold_out from memory: that node could tell a user in line "sold out". A node may repeat it
-- while no stock is left, and while the stock that came back to a sold-out campaign is quarantined.
local full = lined and not line.stands_by and in_force + (g.was_sold_out and g.quarantined or 0) >= g.quantity
local outcomes, entries, waiting, joined = {}, {}, {}, {}
for n = 1, users do
  local user, entry, outcome = ARGV[FIRST_USER - 1 + n], holds[n], refused
  local ticket = lined and (joined[user] or line.live(tickets[n]))
  if entry then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = holding(g, entry)
  elseif issued[user] then
    outcome = ALREADY_ISSUED
    entries[#entries + 1] = '0' .. issued[user]
  elseif ticket then
    outcome = WAITING
  elseif outcome == ISSUED and lined then
    if full then
      outcome = SOLD_OUT
    elseif line.waiting >= limit then
      outcome = UNDECIDED
    else
      outcome, ticket = WAITING, line.join()
      joined[user], new[#new + 1] = ticket, user
      batch.seats[#batch.seats + 1] = user
      batch.seats[#batch.seats + 1] = line.entry(ticket)
    end
  elseif outcome == ISSUED then
    if #winners >= stock then
      outcome = SOLD_OUT
    elseif #winners >= may_issue then
      outcome = UNDECIDED
    else
      issue(g, batch, user)
      if line then line.ends(nil, in_force + #winners >= g.quantity, g.now) end
    end
  end
  outcomes[n] = outcome
  if outcome == WAITING then waiting[#waiting + 1] = ticket end
end

local failed = write(g, batch, refused == ISSUED)
if failed then return failed end
return decided(g, outcomes, entries, #new, waiting)
