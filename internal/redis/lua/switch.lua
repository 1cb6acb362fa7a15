-- Puts a rebuilt campaign into the place of the frozen one, in one step.
--
-- KEYS  behind those of the prelude: 6 the new holders (hash), 7 the new line (stream), 8 the new tickets (hash)
-- ARGV  1 the attempt, 2 the run of the server that the new holders were loaded into, 3 how many holders there are at least, 4 at most
--       5 how many people are in line, 6 the recorders' group, 7 the gate's time at least; 8 and following: fields and values of
--         the campaign's hash
-- Returns {word}
--   'switched'
--   'outdone'   another attempt froze the campaign, or finished
--   'moved'     the server is not the one that the new keys were loaded into, or they are not whole: to be done again

local attempt, run, least, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local people, group, now = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local holders_from, line_from, tickets_from = KEYS[6], KEYS[7], KEYS[8]

local c, instead = campaign('frozen', 'attempts')
if not c then return instead end
if tonumber(c[1]) ~= attempt then return {'outdone'} end
local holders, tickets = redis.call('HLEN', holders_from), redis.call('HLEN', tickets_from)
if run ~= this_run() or holders < least or holders > most then return {'moved'} end
if redis.call('XLEN', line_from) ~= people or tickets < people then return {'moved'} end

local t = redis.call('TIME')
now = math.max(now, t[1] * 1000000 + t[2])
redis.call('UNLINK', holders_key, journal_key, line_key, tickets_key, campaign_key)
if holders > 0 then redis.call('RENAME', holders_from, holders_key) end
if people > 0 then redis.call('RENAME', line_from, line_key) end
if tickets > 0 then redis.call('RENAME', tickets_from, tickets_key) end
redis.call('XGROUP', 'CREATE', journal_key, group, '0', 'MKSTREAM')
redis.call('HSET', campaign_key, 'layout', whole(LAYOUT), 'attempt', whole(attempt), 'attempts', c[2] or '', 'run', run, 'in_force', whole(holders),
  'decided_at', whole(now), 'quarantined', '0', 'quarantined_until', '0', 'was_opens_at', '', 'was_closes_at', '', 'was_sold_out', '0')
redis.call('HSET', campaign_key, unpack(ARGV, 8, #ARGV))
return {'switched'}
