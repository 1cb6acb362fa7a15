-- Replaces a frozen campaign by the rebuilt one, in one step.
--
-- KEYS  after those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  attempt      of the rebuild
--       run          of the server that the new keys were loaded into
--       least, most  how many holders there must be
--       people       how many users are in line
--       group        the recorders' group
--       now          the gate's time is not before this one
--       the list: fields of the campaign's hash and their values
-- Returns one of
--   {'replaced'}
--   {'superseded'}  another attempt froze the campaign, or finished
--   {'moved'}    this is not the server that the new keys were loaded into, or the keys are not complete: they must be loaded again

local a, first = arguments()
local holders_from, line_from, tickets_from = KEYS[6], KEYS[7], KEYS[8]
local run, people = a.run, tonumber(a.people)

local c, instead = campaign('attempts')
if not c then return instead end
if tonumber(c.frozen) ~= tonumber(a.attempt) then return {'superseded'} end
local holders, tickets = redis.call('HLEN', holders_from), redis.call('HLEN', tickets_from)
if run ~= this_run() or holders < tonumber(a.least) or holders > tonumber(a.most) then return {'moved'} end
if redis.call('XLEN', line_from) ~= people or tickets < people then return {'moved'} end

redis.call('UNLINK', holders_key, journal_key, line_key, tickets_key, campaign_key)
if holders > 0 then redis.call('RENAME', holders_from, holders_key) end
if people > 0 then redis.call('RENAME', line_from, line_key) end
if tickets > 0 then redis.call('RENAME', tickets_from, tickets_key) end
redis.call('XGROUP', 'CREATE', journal_key, a.group, '0', 'MKSTREAM')
redis.call('HSET', campaign_key, 'layout', integer(LAYOUT), 'attempt', a.attempt, 'attempts', c.attempts or '', 'run', run, 'in_force', integer(holders),
  'decided_at', integer(math.max(tonumber(a.now), server_time())), 'quarantined', '0', 'quarantined_until', '0', 'was_opens_at', '',
  'was_closes_at', '', 'was_sold_out', '0')
redis.call('HSET', campaign_key, unpack(ARGV, first + 1, #ARGV))
return {'replaced'}
