-- Takes a user out of the line. It needs no memory, so that a user who leaves a full Redis makes room.
--
-- ARGV     as in claim.lua; backlog and limit mean nothing, and the list has one user
-- Returns  {'part_gone'} or {'behind', epoch}, as claim.lua does, or one of these words, with generation, ticket, and the
--          values of state_after in decide.lua:
--   'left'   the user left now
--   'gone'   the user was in line and is no longer
--   'holds'  the user holds a coupon
--   'never'  the user never joined
-- generation and ticket are those of the user's last ticket. They are '' if the line has no log, or if the ticket is older than the epoch.

local g, instead = open()
if instead then return instead end
local line, user = g.line, ARGV[FIRST_USER]
end_line(g)

redis.call('XLEN', journal_key) -- a key of another type ends the script here, before the first write
local entry, own = redis.call('HGET', holders_key, user), line and redis.call('HGET', tickets_key, user)

local ticket = line and line.live(own)
if ticket then
  local batch = new_batch(g)
  stop(line, batch, user, ticket, false)
  redis.call('HDEL', campaign_key, '') -- Redis looks at memory before the first write only: this one needs none
  local failed = write(g, batch, before_stock(g) == ISSUED)
  if failed then return failed end
end
local generation, last
if line then generation, last = line.last_of(own) end
return {ticket and 'left' or entry and 'holds' or own and 'gone' or 'never', 'generation', generation or '', 'ticket', last or '', state_after(g)}
