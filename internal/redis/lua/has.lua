-- Tells of coupons whether each surely is the one of its number in the ledger. It writes nothing.
--
-- ARGV  1 the entries of all coupons, as holders has them, one behind the other; 2 and following: their users
-- Returns {'has', digits}: a digit for each, 1 where it is sure, else 0
--
-- It is sure of a coupon whose user holds it here, whose number is settled and not unrecorded, and whose
-- entry has left the journal. How far the ledger is does not say that by itself: it may have been
-- there when this gate lost its latest decisions and gave their numbers again.

local FIRST_USER = 2
local ENTRY = 17 -- bytes: see claim.lua

local c, instead = campaign('settled')
if instead then return instead end

local sure = tonumber(c[1])
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', '1')[1]
if oldest then
  local fields, first = oldest[2], 1 -- one that does not say its numbers may be about any
  for n = 1, #fields, 2 do
    if fields[n] == 'first' then first = tonumber(fields[n + 1]) or 1 end
  end
  sure = math.min(sure, first - 1)
end

local some_unrecorded = redis.call('SCARD', unrecorded_key) > 0
local entries, digits, at = ARGV[1], {}, 1
for from = FIRST_USER, #ARGV, CHUNK do
  local found = redis.call('HMGET', holders_key, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
  for n = 1, #found do
    local number = struct.unpack('>I6', entries, at)
    local is = number <= sure and found[n] == string.sub(entries, at, at + ENTRY - 1)
    if is and some_unrecorded then
      is = redis.call('SISMEMBER', unrecorded_key, whole(number)) == 0
    end
    digits[#digits + 1] = is and '1' or '0'
    at = at + ENTRY
  end
end
return {'has', table.concat(digits)}
