-- Says of each coupon whether it is surely in the ledger under its number. It writes nothing.
--
-- ARGV  entries   of all coupons, one after the other: as in holders, without tickets and flags
--       the list: the coupons' users
-- Returns {'has', digits}: a digit for each coupon, 1 if it is surely in the ledger, else 0
--
-- A coupon is surely in the ledger if its user holds it here, without a flag, and if its number is drained: see settle.lua. If the gate has
-- lost its latest decisions, it may have issued their numbers again, and the ledger may have another user under such a number. If that is
-- known, the script is sure of nothing.

local a, first = arguments()
local c, instead = campaign('drained_through', 'last_number')
if instead then return instead end

local drained = tonumber(c.drained_through)
if tonumber(c.last_number) < drained then drained = 0 end
local digits, at = {}, 1
each(ARGV, first + 1, #ARGV, function(...)
  for _, held in ipairs(redis.call('HMGET', holders_key, ...)) do
    local entry = string.sub(a.entries, at, at + ENTRY - 1)
    local same = held and unflagged(held) and string.sub(held, 1, ENTRY) == entry
    digits[#digits + 1] = same and struct.unpack('>I6', entry) <= drained and '1' or '0'
    at = at + ENTRY
  end
end)
return {'has', 'digits', table.concat(digits)}
