-- What each script about a campaign begins with: Go sends it before them.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), unrecorded (set)
-- Each script may answer {'newer', layout}: the keys have a layout that it does not know. It has done nothing then.

local LAYOUT = 1 -- the newest layout of a campaign's keys that the scripts know: see layout.go
local CHUNK = 1000 -- values that unpack() puts on Lua's stack, which has room for about 8,000

local campaign_key, holders_key, journal_key, unrecorded_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- whole prints a number; tostring() would round large ones.
local function whole(n) return string.format('%.0f', n) end

-- each calls with the arguments from one to another, some at a time.
local function each(from, to, call)
  for first = from, to, CHUNK do call(unpack(ARGV, first, math.min(first + CHUNK - 1, to))) end
end

-- campaign returns fields of the campaign's hash; or nil and what the script answers instead.
local function campaign(...)
  local fields = {...}
  fields[#fields + 1] = 'layout'
  local c = redis.call('HMGET', campaign_key, unpack(fields))
  local layout = c[#fields]
  if (tonumber(layout or 1) or math.huge) > LAYOUT then return nil, {'newer', layout} end
  return c
end

