-- What the scripts share that know waiting lines: Go sends it behind the prelude.
--
-- The counters of a line are one field of the campaign's hash, line: generation, last ticket, served through, served,
-- waiting, due, pace and waitlist, apart by spaces. A campaign that never had a pace has none. The counters decide: what the
-- keys line and tickets have of another generation, or of tickets up to served through, says nothing any more.
-- Four more words follow in the field of a line that has a log in Kafka: the topic's id and the partition; the offset and the
-- generation with which the epoch began. The scripts keep them as they are.
--
--   line     (stream)  an entry for each ticket that has not ended, GENERATION-TICKET; its fields are the user and the
--                      gate's time at which they joined
--   tickets  (hash)    user -> generation and ticket of those in line, and of those who were sent away, which are of an older
--                      generation. With OVER behind them: of those who left, got a coupon past the line, or whose coupon was
--                      voided. Those who were served have none

local TICKET = 12 -- bytes of an entry in tickets without that byte
local OVER = '\1'
local PAST = 16 -- generations that are told: gate.MaxPastLines

-- line_of returns the line that the field says, or nil.
local function line_of(field)
  if not field then return nil end
  local l, before = {}, field
  local words = {string.match(field, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) ([01])(.*)$')}
  l.generation, l.last, l.through, l.served, l.waiting, l.due = tonumber(words[1]), tonumber(words[2]), tonumber(words[3]),
    tonumber(words[4]), tonumber(words[5]), tonumber(words[6])
  l.pace, l.waitlist = tonumber(words[7]), words[8] == '1' -- no pace is '-'
  l.stands_by = l.waitlist -- but where claims hear sold_out while stock is quarantined
  l.log = words[9]
  if l.log ~= '' and not string.match(l.log or '', '^ %S+ %d+ %-?%d+ %d+$') then l.generation = nil end

  -- counters are what the journal says of the line.
  function l.counters()
    return table.concat({whole(l.generation), whole(l.last), whole(l.through), whole(l.served), whole(l.waiting)}, ' ')
  end

  function l.field()
    return l.counters() .. ' ' .. whole(l.due) .. ' ' .. (l.pace and whole(l.pace) or '-') .. ' ' .. (l.waitlist and '1' or '0') .. l.log
  end

  function l.moved() return l.field() ~= before end

  -- torn tells whether the keys have fewer people than the counters: a part is gone.
  function l.torn()
    local people, tickets = redis.call('XLEN', line_key), redis.call('HLEN', tickets_key)
    return not l.generation or people < l.waiting or tickets < l.waiting
  end

  -- live returns the ticket of an entry in tickets, if it has not ended.
  function l.live(entry)
    if not entry or string.sub(entry, TICKET + 1) == OVER then return nil end
    local generation, ticket = struct.unpack('>I6I6', entry)
    return generation == l.generation and ticket > l.through and ticket or nil
  end

  -- last_of returns the generation and the ticket of an entry in tickets, or nothing if it is older than the epoch of a line that has a log.
  function l.last_of(entry)
    local began = tonumber(string.match(l.log, '(%d+)$'))
    if not entry or not began then return end
    local generation, ticket = struct.unpack('>I6I6', entry)
    if generation >= began then return generation, ticket end
  end

  function l.entry(ticket) return struct.pack('>I6I6', l.generation, ticket) end

  local prefix = (words[1] or '') .. '-'
  function l.id(ticket) return prefix .. whole(ticket) end

  function l.join()
    l.last, l.waiting = l.last + 1, l.waiting + 1
    return l.last
  end

  -- stop ends one ticket, which was served or left.
  function l.stop(served)
    l.waiting = l.waiting - 1
    if served then l.served = l.served + 1 end
    if l.waiting == 0 then l.through = l.last end
  end

  -- ends ends the generation if tickets of it were given, and the campaign has been closed since an
  -- instant, or every coupon is in force now and nobody stands by. Whoever is in line is sent away.
  function l.ends(closed_since, is_full, now)
    local why = closed_since and 'closed' or is_full and not l.stands_by and 'sold_out'
    if why and l.last > 0 then l.finish(why, closed_since or now) end
  end

  -- finish ends the generation. Then l.ended is what the journal says of it, and l.past what is told.
  function l.finish(why, at)
    l.why = why
    l.ended = whole(l.generation) .. ' ' .. why .. ' ' .. whole(at) .. ' ' .. string.match(l.counters(), '^%d+ (.*)$')
    local lines = {l.ended}
    for told in string.gmatch(redis.call('HGET', campaign_key, 'past') or '', '[^\n]+') do
      if #lines < PAST then lines[#lines + 1] = told end
    end
    l.past = table.concat(lines, '\n')
    l.generation, l.last, l.through, l.served, l.waiting = l.generation + 1, 0, 0, 0, 0
    prefix = whole(l.generation) .. '-'
  end

  -- take takes turns from the pace's bucket by the clock, at most limit: firstcome.Pace.Take.
  function l.take(clock, limit)
    local pace = l.pace or 0
    if pace == 0 then
      if limit > 0 or clock < l.due then l.due = clock end
      return limit
    end
    local bucket = math.max(100000, math.ceil(1000000 / pace))
    local due = math.min(math.max(l.due, clock - bucket), clock + bucket)
    local turns = math.min(limit, math.max(0, math.floor((clock - due) * pace / 1000000)))
    -- One that was pulled back is kept, else it would be pulled back for ever.
    if turns > 0 or due < l.due then l.due = due + math.ceil(turns * 1000000 / pace) end
    return turns
  end

  -- tell adds what the journal says: which tickets the coupons are of, if any, and of the line after the script.
  function l.tell(add, tickets)
    if tickets then
      local texts = {}
      for n, ticket in ipairs(tickets) do texts[n] = whole(ticket) end
      add('generation', string.match(before, '^%d+'))
      add('tickets', table.concat(texts, '\n'))
    end
    add('line', l.counters())
    if l.ended then add('ended', l.ended) end
  end

  -- keep writes the line, without the tickets that were served, and those that ended before their turn: their ids. gone has
  -- no entry in tickets any more, over are pairs of users and entries that stay.
  function l.keep(ids, gone, over)
    if #gone > 0 and not l.ended then redis.call('XTRIM', line_key, 'MINID', l.id(l.through + 1)) end
    each(ids, 1, #ids, function(...) redis.call('XDEL', line_key, ...) end)
    each(gone, 1, #gone, function(...) redis.call('HDEL', tickets_key, ...) end)
    each(over, 1, #over, function(...) redis.call('HSET', tickets_key, ...) end)
    redis.call('HSET', campaign_key, 'line', l.field())
    if not l.ended then return end
    redis.call('HSET', campaign_key, 'past', l.past)
    redis.pcall('UNLINK', line_key) -- what is left of it says nothing any more
  end

  return l
end

