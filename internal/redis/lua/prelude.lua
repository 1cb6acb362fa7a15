-- What each script about a campaign begins with: Go sends it before them.
--
-- KEYS  campaign (hash), holders (hash), journal (stream), line (stream), tickets (hash)
-- Each script may answer, and has done nothing then:
--   {'replica'}        the server is a replica, whose keys may be older than its primary's
--   {'newer', layout}  the keys have a layout that it does not know
--   {'absent'}         there is no campaign under these keys
--   {'rebuilding'}     the campaign is frozen, because it is being rebuilt from the ledger: see freeze.lua. Scripts that only read answer it if the
--                      campaign is absent besides
-- Those that write may also answer:
--   {'unverified'}     the server is another one, or another run of it, than the one that decided last
-- No script asks whose campaign it is: another ledger's campaign has other keys (see keys.go).

local LAYOUT = 1 -- the newest layout of a campaign's keys that the scripts know: see keys.go
local CHUNK = 1000 -- values that unpack() puts on Lua's stack, which has room for about 8,000
local ENTRY = 17 -- bytes of a holder's entry
local SERVED = ENTRY + 12 -- bytes of that of a holder who was in line: the ticket is behind them, as in line.lua
local DIRECT = 2147483648 -- the highest bit of the four bytes of the terms' version in an entry: set for a direct issue
local FLAG = '\1' -- behind the entry of a dead letter: see settle.lua

local campaign_key, holders_key, journal_key, line_key, tickets_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- whole prints a number; tostring() would round large ones.
local function whole(n) return string.format('%.0f', n) end

-- each calls with the values of a list from one to another, some at a time.
local function each(list, from, to, call)
  for first = from, to, CHUNK do call(unpack(list, first, math.min(first + CHUNK - 1, to))) end
end

local replication = redis.call('INFO', 'replication')

-- this_run returns the name of this run of the server: it is a primary all that time. Redis makes a new master_replid when it
-- starts, when it becomes a primary, when its first replica comes, and when it has had none for repl-backlog-ttl. (Its run_id stays if it follows another server and then
-- leads again.)
local function this_run() return string.match(replication, 'master_replid:(%x+)') end

-- unverified returns, given the fields run and frozen, the word for why what is here may be an older state than the last one, if it may.
local function unverified(run, frozen) return frozen and 'rebuilding' or run ~= this_run() and 'unverified' end

-- unflagged tells whether a holder's entry is no dead letter's.
local function unflagged(entry) return #entry == ENTRY or #entry == SERVED end

-- campaign returns fields of the campaign's hash, and what the script answers instead: at a replica, or of a newer
-- layout no fields, of an absent campaign empty ones. An absent campaign may be frozen.
local function campaign(...)
  if not string.find(replication, 'role:master', 1, true) then return nil, {'replica'} end
  local fields = {...}
  local n = #fields
  fields[n + 1], fields[n + 2], fields[n + 3] = 'version', 'layout', 'frozen'
  local c = redis.call('HMGET', campaign_key, unpack(fields))
  local layout = c[n + 2]
  if (tonumber(layout or 1) or math.huge) > LAYOUT then return nil, {'newer', layout} end
  return c, not c[n + 1] and {c[n + 3] and 'rebuilding' or 'absent'} or nil
end

