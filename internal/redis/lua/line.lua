-- The part that scripts share which know waiting lines. Go sends it after the prelude.
--
-- The field line of the campaign's hash has the line's counters, with spaces between: generation, last ticket, served through, served,
-- waiting, due, pace and waitlist. A campaign that never had a pace has no such field. The counters decide: entries of line and tickets that
-- are of another generation, or of tickets up to served through, mean nothing.
-- If the line has a log in Kafka, four more words follow: the topic's id, the partition, and the offset and the generation with which the
-- epoch began. The scripts keep these words as they are.
--
--   line     (stream)  an entry for each ticket that has not ended. Its id is GENERATION-TICKET, its fields are the user and the gate's time
--                      at which they joined
--   tickets  (hash)    user -> generation and ticket, of users in line, and of users of an older generation who were sent away. OVER follows
--                      if the user left, got a coupon without their turn, or was served and the coupon was voided. A served user has none

local TICKET = 12 -- bytes of an entry in tickets, without OVER
local OVER = '\1'
local PAST = 16 -- how many ended generations the gate remembers: gate.MaxPastLines

-- line_of returns the line that a field describes, or nil.
local function line_of(field)
  if not field then return nil end
  local l, before = {}, field
  local words = {string.match(field, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) ([01])(.*)$')}
  l.generation, l.last, l.through, l.served, l.waiting, l.due = tonumber(words[1]), tonumber(words[2]), tonumber(words[3]),
    tonumber(words[4]), tonumber(words[5]), tonumber(words[6])
  l.pace, l.waitlist = tonumber(words[7]), words[8] == '1' -- without a pace the word is '-'
  l.stands_by = l.waitlist -- scripts that decide set it to false while nodes may still repeat sold_out
  l.log = words[9]
  if l.log ~= '' and not string.match(l.log or '', '^ %S+ %d+ %-?%d+ %d+$') then l.generation = nil end

  -- counters returns the first five words of the field, which the journal has too.
  function l.counters()
    return table.concat({integer(l.generation), integer(l.last), integer(l.through), integer(l.served), integer(l.waiting)}, ' ')
  end

  function l.field()
    return l.counters() .. ' ' .. integer(l.due) .. ' ' .. (l.pace and integer(l.pace) or '-') .. ' ' .. (l.waitlist and '1' or '0') .. l.log
  end

  function l.moved() return l.field() ~= before end

  -- live returns the ticket of an entry in tickets, if the ticket has not ended.
  function l.live(entry)
    if not entry or string.sub(entry, TICKET + 1) == OVER then return nil end
    local generation, ticket = struct.unpack('>I6I6', entry)
    return generation == l.generation and ticket > l.through and ticket or nil
  end

  -- last_of returns the generation and the ticket of an entry in tickets. It returns nothing if the line has no log, or if the entry is
  -- older than the epoch.
  function l.last_of(entry)
    local began = tonumber(string.match(l.log, '(%d+)$'))
    if not entry or not began then return end
    local generation, ticket = struct.unpack('>I6I6', entry)
    if generation >= began then return generation, ticket end
  end

  function l.entry(ticket) return struct.pack('>I6I6', l.generation, ticket) end

  local prefix = (words[1] or '') .. '-'
  function l.id(ticket) return prefix .. integer(ticket) end

  function l.join()
    l.last, l.waiting = l.last + 1, l.waiting + 1
    return l.last
  end

  -- stop ends one ticket: its user got a coupon, or left.
  function l.stop(got_coupon)
    l.waiting = l.waiting - 1
    if got_coupon then l.served = l.served + 1 end
    if l.waiting == 0 then l.through = l.last end
  end

  -- ends ends the generation, if it has given tickets, and if the campaign has been closed since a time, or if all coupons are in force and
  -- there is no waitlist. Users in line are sent away.
  function l.ends(closed_since, is_full, now)
    local why = closed_since and 'closed' or is_full and not l.stands_by and 'sold_out'
    if why and l.last > 0 then l.finish(why, closed_since or now) end
  end

  -- finish ends the generation. l.ended is then its record for the journal, and l.past the new value of the field past.
  function l.finish(why, at)
    l.why = why
    l.ended = integer(l.generation) .. ' ' .. why .. ' ' .. integer(at) .. ' ' .. string.match(l.counters(), '^%d+ (.*)$')
    local lines = {l.ended}
    for earlier in string.gmatch(redis.call('HGET', campaign_key, 'past') or '', '[^\n]+') do
      if #lines < PAST then lines[#lines + 1] = earlier end
    end
    l.past = table.concat(lines, '\n')
    l.generation, l.last, l.through, l.served, l.waiting = l.generation + 1, 0, 0, 0, 0
    prefix = integer(l.generation) .. '-'
  end

  -- take takes turns from the pace's bucket by the clock, at most limit: see firstcome.Pace.Take.
  function l.take(clock, limit)
    local pace = l.pace or 0
    if pace == 0 then
      if limit > 0 or clock < l.due then l.due = clock end
      return limit
    end
    local bucket = math.max(100000, math.ceil(1000000 / pace))
    local due = math.min(math.max(l.due, clock - bucket), clock + bucket)
    local turns = math.min(limit, math.max(0, math.floor((clock - due) * pace / 1000000)))
    -- If the clock went back, due was lowered. It must be kept then, or it would be lowered at each call.
    if turns > 0 or due < l.due then l.due = due + math.ceil(turns * 1000000 / pace) end
    return turns
  end

  -- report adds to a journal entry the tickets of its coupons, if they have any, and the line as it is after the script.
  function l.report(add, tickets)
    if tickets then
      local texts = {}
      for n, ticket in ipairs(tickets) do texts[n] = integer(ticket) end
      add('generation', string.match(before, '^%d+'))
      add('tickets', table.concat(texts, '\n'))
    end
    add('line', l.counters())
    if l.ended then add('ended', l.ended) end
  end

  -- keep writes the line. ids are the entries of tickets that ended before their turn, over are pairs of their users and new entries in
  -- tickets. gone are the users who were served.
  function l.keep(ids, over, gone)
    if #gone > 0 and not l.ended then redis.call('XTRIM', line_key, 'MINID', l.id(l.through + 1)) end
    each(ids, 1, #ids, function(...) redis.call('XDEL', line_key, ...) end)
    each(gone, 1, #gone, function(...) redis.call('HDEL', tickets_key, ...) end)
    each(over, 1, #over, function(...) redis.call('HSET', tickets_key, ...) end)
    redis.call('HSET', campaign_key, 'line', l.field())
    if not l.ended then return end
    redis.call('HSET', campaign_key, 'past', l.past)
    redis.pcall('UNLINK', line_key) -- all its entries are of the ended generation
  end

  return l
end

-- part_gone reports whether the campaign's keys do not agree, or whether the ledger has numbers that this gate never issued. A part of the keys
-- is gone then, and any decision would be a guess.
local function part_gone(c, line)
  if redis.call('HLEN', holders_key) ~= tonumber(c.in_force) or tonumber(c.last_number) < tonumber(c.drained_through) then return true end
  return line and (not line.generation or redis.call('XLEN', line_key) < line.waiting or redis.call('HLEN', tickets_key) < line.waiting)
end

-- older returns the script's answer if the campaign's keys are older than a witness, or nil: {'behind', epoch} if they are of an earlier epoch, or
-- {'unverified'}. A witness has the epoch, the version, the last number, and the line's generation and last ticket that this gate or the ledger
-- told the node: numbers with spaces between. All but the epoch count within this epoch.
local function older(c, line, witness)
  local epoch, version, number, generation, ticket = string.match(witness, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tonumber(c.epoch) < tonumber(epoch) then return {'behind', 'epoch', c.epoch} end
  if tonumber(c.epoch) > tonumber(epoch) then return nil end
  if tonumber(c.version) < tonumber(version) or tonumber(c.last_number) < tonumber(number) then return {'unverified'} end
  if line and not line.generation then return nil end -- the line is gone
  local later = tonumber(generation) - (line and line.generation or 0) -- how many generations the witness is ahead
  return (later > 0 or later == 0 and tonumber(ticket) > (line and line.last or 0)) and {'unverified'} or nil
end

-- new_line returns the field of a line that begins with these terms.
local function new_line(a)
  local field = '1 0 0 0 0 0 ' .. (a.pace == '' and '-' or a.pace) .. ' ' .. a.waitlist
  return a.log == '' and field or field .. ' ' .. a.log .. ' 1'
end

