-- Reads a page of a frozen campaign's journal.
--
-- ARGV  attempt  of the rebuild that froze it
--       from     where the page begins, as XRANGE takes it
--       count    how many entries
-- Returns one of
--   {'entries', entries}
--   {'superseded'}  this attempt has not frozen the campaign, or not on this server

local a = arguments()
local c, instead = campaign()
if not c then return instead end
if tonumber(c.frozen) ~= tonumber(a.attempt) then return {'superseded'} end
return {'entries', 'entries', redis.call('XRANGE', journal_key, a.from, '+', 'COUNT', a.count)}
