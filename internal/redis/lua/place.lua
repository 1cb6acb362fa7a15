-- Reads a campaign's line, and where a user stands in it, in one step. It writes nothing.
--
-- ARGV  clock    microseconds, or '' for the server's clock
--       witness  the least that the gate must know of the campaign: see older in line.lua
--       the list: a user, or nothing
-- Returns one of
--   {'part_gone'}        a part of the campaign's keys is gone
--   {'unverified'}  the keys may be of an earlier time, when a user had not joined yet or had not been served. So does {'rebuilding'}
--   {'behind', epoch}  see older in line.lua
--   {'there', line, past, holder, ticket, clock, quantity, …}
--     line    the hash field line, or ''
--     past    the ended generations, the last one first, one in each line of text: see line.lua
--     holder  the user's entry in holders, or ''
--     ticket  the user's ticket that has not ended, or ''
--     last_generation, last_ticket
--             the user's last ticket, ended or not; '' if there is none, the line has no log, or the ticket is older than the epoch
--     own     the user's entry in tickets, or ''
--     joined  when the user joined who is named and in line; if no user is named, when the next user in line joined; or ''
--     The other values are fields of the campaign's hash

local FIELDS = {'epoch', 'version', 'last_number', 'quantity', 'opens_at', 'closes_at', 'paused', 'closed', 'closed_at', 'in_force', 'decided_at', 'quarantined_until',
  'was_opens_at', 'was_closes_at', 'was_sold_out'}

local a, first = arguments()
local c, instead = campaign('line', 'past', 'drained_through', unpack(FIELDS))
if instead then return instead end
local why, line = unverified(c), line_of(c.line)
if why then return {why} end
local forgotten = older(c, line, a.witness)
if forgotten then return forgotten end
if part_gone(c, line) then return {'part_gone'} end
local user, holder, own, ticket, joined = ARGV[first + 1], '', '', '', ''
local last_generation, last_ticket
if user then
  holder, own = redis.call('HGET', holders_key, user) or '', line and redis.call('HGET', tickets_key, user) or ''
  if own ~= '' then
    ticket = line.live(own) or ''
    last_generation, last_ticket = line.last_of(own)
  end
end
if line and line.waiting > 0 and (ticket ~= '' or not user) then
  local from, to = line.id(ticket ~= '' and ticket or line.through + 1), ticket ~= '' and line.id(ticket) or integer(line.generation)
  local next = redis.call('XRANGE', line_key, from, to, 'COUNT', '1')[1]
  joined = next and next[2][4] or ''
end
local there = {'there', 'line', c.line or '', 'past', c.past or '', 'holder', holder, 'own', own, 'ticket', ticket,
  'last_generation', last_generation or '', 'last_ticket', last_ticket or '', 'joined', joined, 'clock', tonumber(a.clock) or server_time()}
for _, name in ipairs(FIELDS) do
  there[#there + 1] = name
  there[#there + 1] = c[name] or ''
end
return there
