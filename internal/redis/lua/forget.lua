-- Deletes a campaign's keys, if they are of the campaign with a marker.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), unrecorded (set)
-- ARGV  1 marker
-- Returns {'forgotten'}, or {'left'}: there is no campaign, or another ledger's. What is
-- there without a campaign says of no ledger that it is its own.

if redis.call('HGET', KEYS[1], 'marker') ~= ARGV[1] then return {'left'} end
redis.call('UNLINK', unpack(KEYS))
return {'forgotten'}
