-- Reads a campaign that does not decide. It writes nothing.
--
-- Returns {'stopped', was, is, frozen, attempt, holders, epoch, …}
--   was, is   the run that decided last, and the server's run
--   frozen    1 if a rebuild has frozen the campaign, else 0
--   attempt   the last attempt at a rebuild
--   holders   how many holders there are
--   The other values are fields of the campaign's hash; those that are not there are ''

local FIELDS = {'epoch', 'version', 'last_number', 'drained_through', 'in_force', 'quantity', 'opens_at', 'closes_at', 'paused', 'closed', 'ceiling',
  'closed_at', 'line', 'decided_at', 'terms_version', 'terms', 'codes'}

local c, instead = campaign('attempt', unpack(FIELDS))
if not c or instead and not c.frozen then return instead end
local stopped = {'stopped', 'was', c.run or '', 'is', this_run(), 'frozen', c.frozen and 1 or 0,
  'attempt', math.max(tonumber(c.attempt) or 0, tonumber(c.frozen) or 0), 'holders', redis.call('HLEN', holders_key)}
for _, name in ipairs(FIELDS) do
  stopped[#stopped + 1] = name
  stopped[#stopped + 1] = c[name] or ''
end
return stopped
