-- Tells whether each coupon is surely in the ledger under its number. It writes nothing.
--
-- ARGV  1 the entries of all coupons, as holders has them but for their tickets, one behind the other; 2 and following: their
--       users
-- Returns {'has', digits}: a digit for each, 1 where it is sure, else 0
--
-- It is sure of a coupon whose user holds it here, without a flag, and whose number is drained: see settle.lua.
-- A coupon of the number in the ledger may be another user's: this gate may have lost its latest decisions and
-- given their numbers again. Where that is known it is sure of nothing.

local FIRST_USER = 2

local c, instead = campaign('drained_through', 'last_number')
if instead then return instead end

local sure = tonumber(c[1])
if tonumber(c[2]) < sure then sure = 0 end
local entries, digits, at = ARGV[1], {}, 1
each(ARGV, FIRST_USER, #ARGV, function(...)
  for _, held in ipairs(redis.call('HMGET', holders_key, ...)) do
    local entry = string.sub(entries, at, at + ENTRY - 1)
    local same = held and unflagged(held) and string.sub(held, 1, ENTRY) == entry
    digits[#digits + 1] = same and struct.unpack('>I6', entry) <= sure and '1' or '0'
    at = at + ENTRY
  end
end)
return {'has', table.concat(digits)}
