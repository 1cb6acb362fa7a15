-- Reads a page of a frozen campaign's journal.
--
-- ARGV  1 the attempt that froze it, 2 where the page begins, as XRANGE takes it, 3 how many entries
-- Returns
--   {'entries', entries}
--   {'outdone'}   this attempt did not freeze the campaign, or not at this server

local c, instead = campaign('frozen')
if not c then return instead end
if tonumber(c[1]) ~= tonumber(ARGV[1]) then return {'outdone'} end
return {'entries', redis.call('XRANGE', journal_key, ARGV[2], '+', 'COUNT', ARGV[3])}
