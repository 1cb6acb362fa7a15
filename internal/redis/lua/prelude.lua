-- The first part of each script about a campaign: its keys, and the functions that all scripts share.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), line (stream), tickets (hash)
-- ARGV  names and values in turn. A script that takes a list gets it after an empty name
-- Returns a word, then names and values in turn. In a script's contract, {'word', name, …} means these names with their values.
--
-- Each script may return one of these instead, and has then done nothing:
--   {'replica'}        this server is a replica. Its keys may be older than those of its primary
--   {'newer', layout}  the keys have a layout that this release does not know
--   {'absent'}         there is no campaign under these keys
--   {'rebuilding'}     the campaign is frozen for a rebuild: see freeze.lua. A script that only reads returns it only if the campaign is
--                      absent as well
-- A script that writes may also return:
--   {'unverified'}     another server decided last, or this one in an earlier run
-- A script does not check which ledger a campaign belongs to: each ledger has keys of its own (see keys.go).

local LAYOUT = 1 -- the newest layout of a campaign's keys that this release knows: see keys.go
local CHUNK = 1000 -- values that unpack() puts on Lua's stack at once; it has room for about 8,000
local ENTRY = 17 -- bytes of a holder's entry
local SERVED = ENTRY + 12 -- bytes of the entry of a holder who was in line: their ticket follows, as in line.lua
local DIRECT = 2147483648 -- the highest bit of the four bytes with the terms' version in an entry: the coupon was issued directly
local FLAG = '\1' -- ends the entry of a dead letter: see settle.lua

local campaign_key, holders_key, journal_key, line_key, tickets_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- arguments returns the values of ARGV by their names, and the index of the last value before the list.
local function arguments()
  local values, n = {}, 1
  while ARGV[n] and ARGV[n] ~= '' do
    values[ARGV[n]] = ARGV[n + 1]
    n = n + 2
  end
  return values, n
end

-- integer prints a number. tostring() would round large numbers.
local function integer(n) return string.format('%.0f', n) end

-- each calls a function with the values of a list from one index to another, at most CHUNK at a time.
local function each(list, from, to, call)
  for first = from, to, CHUNK do call(unpack(list, first, math.min(first + CHUNK - 1, to))) end
end

-- server_time returns the server's clock in microseconds.
local function server_time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local replication = redis.call('INFO', 'replication')

-- this_run returns the name of the server's run. A run is the time for which a server is the primary without a break. Its name is
-- master_replid, of 40 digits. Redis makes a new name when it starts and when it becomes a primary. It also makes one when its first
-- replica connects, and when it has had no replica for repl-backlog-ttl. (run_id is not enough: it stays the same if a server follows
-- another and becomes the primary again.)
local function this_run()
  local _, before = string.find(replication, 'master_replid:', 1, true)
  return string.sub(replication, before + 1, before + 40)
end

-- unverified returns why the script must not trust the campaign's keys, or false. 'rebuilding': a rebuild has frozen them. 'unverified':
-- another run of the server wrote them, so they may be older than the last decision.
local function unverified(c) return c.frozen and 'rebuilding' or c.run ~= this_run() and 'unverified' end

-- unflagged reports whether a holder's entry is not flagged as a dead letter.
local function unflagged(entry) return #entry == ENTRY or #entry == SERVED end

-- fields returns values of the campaign's hash as texts: of version, layout, frozen and run, and of the named fields. A missing field is false.
-- It also returns the script's answer, if the script must do nothing. There are no values then, unless the campaign is absent: an absent
-- campaign may be frozen.
local function fields(...)
  if not string.find(replication, 'role:master', 1, true) then return nil, {'replica'} end
  local values = redis.call('HMGET', campaign_key, 'version', 'layout', 'frozen', 'run', ...)
  if (tonumber(values[2] or 1) or math.huge) > LAYOUT then return nil, {'newer', 'layout', values[2]} end
  return values, not values[1] and {values[3] and 'rebuilding' or 'absent'} or nil
end

-- campaign returns what fields does, by the fields' names.
local function campaign(...)
  local values, instead = fields(...)
  if not values then return nil, instead end
  local c = {version = values[1], frozen = values[3], run = values[4]}
  for n, name in ipairs({...}) do c[name] = values[4 + n] end
  return c, instead
end

