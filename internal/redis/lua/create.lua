-- Makes a campaign by its change 1.
--
-- ARGV     as in apply.lua for terms, and
--          epoch  of the campaign
--          group  the recorders' group
--          until  the time in microseconds until which the campaign may be made
-- Returns  {'applied', epoch}, or, and nothing is done then,
--   {'there'}  the campaign has been made: apply.lua says what became of its change
--   {'late'}   it is after until
--   {'part_gone'}   there are parts of a campaign
--
-- A campaign is never made twice, or its whole stock could be issued again. So the caller first asks the ledger whether there was one, and the time
-- limits how old the ledger's answer may be. An empty journal is no part of a campaign: an attempt that failed may have left it.

local a = arguments()
local c, instead = campaign()
if not c or instead and c.frozen then return instead end
if not instead then return {'there'} end
if redis.call('HLEN', holders_key) + redis.call('XLEN', journal_key) + redis.call('XLEN', line_key) + redis.call('HLEN', tickets_key) > 0 then return {'part_gone'} end
local now = tonumber(a.clock) or server_time()
if now > tonumber(a['until']) then return {'late'} end
local made = redis.pcall('XGROUP', 'CREATE', journal_key, a.group, '0', 'MKSTREAM')
if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
redis.call('HSET', campaign_key, 'layout', integer(LAYOUT), 'epoch', a.epoch, 'version', '1', 'terms_version', '1', 'terms', a.terms, 'quantity', a.quantity,
  'opens_at', a.opens_at, 'closes_at', a.closes_at, 'paused', a.paused, 'closed', '0', 'in_force', '0', 'issued', '0', 'last_number', '0',
  'drained_through', '0', 'decided_at', integer(now), 'quarantined', '0', 'quarantined_until', '0', 'was_opens_at', '', 'was_closes_at', '',
  'was_sold_out', '0', 'run', this_run(), 'ceiling', a.ceiling, 'opened_at', '', 'sold_out_at', tonumber(a.quantity) == 0 and integer(now) or '', 'closed_at', '')
if a.pace ~= '' then redis.call('HSET', campaign_key, 'line', new_line(a)) end
return {'applied', 'epoch', a.epoch}
