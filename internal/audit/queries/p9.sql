-- name: served_in_order
-- Coupons are issued to tickets in the order of the tickets.
-- says: number {number} was issued to the ticket {generation}.{ticket}, after number {lower} to the ticket {lower_generation}.{lower_ticket}
SELECT number, generation, ticket, lower, lower_generation, lower_ticket
FROM (
    SELECT number, COALESCE(generation, 0) AS generation, COALESCE(ticket, 0) AS ticket,
        LAG(number) OVER (ORDER BY number) AS lower,
        LAG(COALESCE(generation, 0)) OVER (ORDER BY number) AS lower_generation,
        LAG(COALESCE(ticket, 0)) OVER (ORDER BY number) AS lower_ticket
    FROM coupons WHERE campaign_id = :campaign AND (ticket IS NOT NULL OR generation IS NOT NULL)
) c
WHERE generation < lower_generation OR generation = lower_generation AND ticket <= lower_ticket
ORDER BY number;

-- name: generations
-- The ended generations of the line are numbered without a gap, and the line is in the next one. Another gate reports an end with its next coupons, which may be on their way.
-- says: the line is in generation {generation}, but {ended} have ended, the last of them generation {last}
SELECT k.generation, p.ended, p.last
FROM campaigns k
CROSS JOIN (SELECT COUNT(*) AS ended, COALESCE(MAX(generation), 0) AS last FROM past_lines WHERE campaign_id = :campaign) p
WHERE k.id = :campaign
  AND (p.ended <> p.last OR k.generation <> p.ended + 1 AND (k.gate = 'ledger' OR k.last_number <= k.drained_through));

-- name: ended
-- A generation ended because a coupon or new terms sold the campaign out, because its window ended or an operator closed it, or because another gate lost it.
-- says: generation {generation} ended at {ended_at} as {reason}, but nothing at that time explains it
SELECT p.generation, p.ended_at, p.reason
FROM campaigns k JOIN past_lines p ON p.campaign_id = k.id
WHERE k.id = :campaign AND NOT CASE
    WHEN p.reason = 'lost' THEN k.gate <> 'ledger'
    WHEN p.reason = 'sold_out' THEN k.gate <> 'ledger'
        OR EXISTS (SELECT 1 FROM changes h WHERE h.campaign_id = :campaign AND h.kind = 'terms' AND h.changed_at = p.ended_at)
        OR EXISTS (SELECT 1 FROM coupons c WHERE c.campaign_id = :campaign AND c.issued_at = p.ended_at)
    ELSE k.closed AND (k.gate <> 'ledger' OR k.closed_at = p.ended_at)
        OR EXISTS (SELECT 1 FROM changes h WHERE h.campaign_id = :campaign AND h.kind IN ('terms', 'reconcile') AND NOT h.refused
            AND (h.closes_at = p.ended_at OR h.closes_at < h.changed_at AND (k.gate <> 'ledger' OR h.changed_at = p.ended_at)))
    END
ORDER BY p.generation;

-- name: given_in_order
-- The tickets of a generation are numbered without a gap, in the order in which they were issued, and no ticket ended before it was issued.
-- says: the ticket {generation}.{ticket}, issued at {joined_at}, follows the ticket {generation}.{earlier}, issued at {earlier_at}; it ended at {ended_at}
SELECT generation, ticket, joined_at, earlier, earlier_at, ended_at
FROM (
    SELECT generation, ticket, joined_at, ended_at,
        COALESCE(LAG(ticket) OVER (PARTITION BY generation ORDER BY ticket), 0) AS earlier,
        LAG(joined_at) OVER (PARTITION BY generation ORDER BY ticket) AS earlier_at
    FROM tickets WHERE campaign_id = :campaign
) t
WHERE ticket <> earlier + 1 OR joined_at < earlier_at OR ended_at < joined_at
ORDER BY generation, ticket;

-- name: in_line_twice
-- A user is in line only once.
-- says: the user "{user_id}" is in line {places} times in generation {generation}
SELECT user_id, generation, COUNT(*) AS places
FROM tickets
WHERE campaign_id = :campaign AND ended_at IS NULL
GROUP BY user_id, generation
HAVING COUNT(*) > 1
ORDER BY user_id;

-- name: issued_to
-- If the ledger keeps the line, a coupon that was issued to a ticket belongs to the ticket's user, and was issued when the ticket ended.
-- says: to the ticket {generation}.{ticket} of the user "{user_id}" {coupons} coupons were issued at {at} by the coupons, but {tickets} by the ticket
SELECT generation, ticket, user_id, at, SUM(coupon) AS coupons, SUM(issued) AS tickets
FROM (
    SELECT COALESCE(c.generation, 0) AS generation, COALESCE(c.ticket, 0) AS ticket, c.user_id, c.issued_at AS at, 1 AS coupon, 0 AS issued
    FROM campaigns k CROSS JOIN coupons c
    WHERE k.id = :campaign AND k.gate = 'ledger' AND c.campaign_id = :campaign AND (c.ticket IS NOT NULL OR c.generation IS NOT NULL)
    UNION ALL
    SELECT generation, ticket, user_id, ended_at, 0, 1
    FROM tickets WHERE campaign_id = :campaign AND outcome = 'issued'
) t
GROUP BY generation, ticket, user_id, at
HAVING SUM(coupon) <> SUM(issued)
ORDER BY generation, ticket;

-- name: passed_over
-- A user whose ticket ended because of a coupon got that coupon directly, at that time.
-- says: the ticket {generation}.{ticket} ended at {ended_at} because "{user_id}" got a coupon directly, but no coupon was issued so
SELECT t.generation, t.ticket, t.user_id, t.ended_at
FROM tickets t
LEFT JOIN (SELECT user_id, issued_at FROM coupons WHERE campaign_id = :campaign AND ticket IS NULL) c
  ON c.user_id = t.user_id AND c.issued_at = t.ended_at
WHERE t.campaign_id = :campaign AND t.outcome = 'already_issued' AND c.user_id IS NULL
ORDER BY t.generation, t.ticket;

-- name: counted
-- The campaign's row counts the tickets of its generation, and the row of an ended generation counts its own. All tickets up to served_through have ended, and it is not lower than
-- the last ticket that was served.
-- says: generation {generation} counts {last_ticket} tickets, {served} served, {waiting} in line, and all up to {served_through} ended; by its tickets it is {its_last}, {its_served}, {its_waiting}, and from {least} to {most}
WITH says AS (
    SELECT generation, last_ticket, served, waiting, served_through FROM campaigns WHERE id = :campaign AND gate = 'ledger'
    UNION ALL
    SELECT p.generation, p.last_ticket, p.served, p.waiting, p.served_through
    FROM campaigns k JOIN past_lines p ON p.campaign_id = k.id
    WHERE k.id = :campaign AND k.gate = 'ledger'
),
has AS (
    SELECT generation, MAX(ticket) AS last_ticket,
        SUM(CASE WHEN outcome IN ('issued', 'already_issued') THEN 1 ELSE 0 END) AS served, SUM(CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END) AS waiting,
        MIN(CASE WHEN ended_at IS NULL THEN ticket END) AS next, MAX(CASE WHEN outcome = 'issued' THEN ticket ELSE 0 END) AS least
    FROM tickets WHERE campaign_id = :campaign
    GROUP BY generation
),
both_of AS (
    SELECT s.generation, s.last_ticket, s.served, s.waiting, s.served_through,
        COALESCE(h.last_ticket, 0) AS its_last, COALESCE(h.served, 0) AS its_served, COALESCE(h.waiting, 0) AS its_waiting,
        CASE WHEN h.next IS NULL THEN COALESCE(h.last_ticket, 0) ELSE h.least END AS least, COALESCE(h.next - 1, h.last_ticket, 0) AS most
    FROM says s LEFT JOIN has h ON h.generation = s.generation
)
SELECT generation, last_ticket, served, waiting, served_through, its_last, its_served, its_waiting, least, most
FROM both_of
WHERE last_ticket <> its_last OR served <> its_served OR waiting <> its_waiting OR served_through < least OR served_through > most
ORDER BY generation;

-- name: unknown_generation
-- Each ticket belongs to a generation of the line. If another gate keeps the line, the ledger has no tickets.
-- says: there are tickets of the generation {generation}, but it has no row, or another gate keeps the line
SELECT DISTINCT t.generation
FROM campaigns k JOIN tickets t ON t.campaign_id = k.id
WHERE k.id = :campaign
  AND (k.gate <> 'ledger'
    OR t.generation <> k.generation AND NOT EXISTS (SELECT 1 FROM past_lines p WHERE p.campaign_id = :campaign AND p.generation = t.generation))
ORDER BY t.generation;

-- name: served_through
-- If another gate keeps the line, it reports how far each generation is served. No coupon has a later ticket, and there are no more coupons than served tickets. The row of a lost
-- generation has only what the ledger knew by then.
-- says: {coupons} coupons were issued to tickets of the generation {generation}, up to {last_ticket}, but {served} tickets were served, up to {served_through}
WITH says AS (
    SELECT generation, served, served_through, last_ticket, 'now' AS reason FROM campaigns WHERE id = :campaign
    UNION ALL
    SELECT generation, served, served_through, last_ticket, reason FROM past_lines WHERE campaign_id = :campaign
),
has AS (
    SELECT generation, COUNT(*) AS coupons, MAX(ticket) AS last_ticket
    FROM coupons WHERE campaign_id = :campaign AND ticket IS NOT NULL
    GROUP BY generation
)
SELECT h.generation, h.coupons, h.last_ticket, s.served, s.served_through
FROM campaigns k CROSS JOIN has h LEFT JOIN says s ON s.generation = h.generation
WHERE k.id = :campaign AND k.gate <> 'ledger'
  AND (s.generation IS NULL OR s.reason <> 'lost' AND (h.last_ticket > s.served_through OR h.coupons > s.served))
ORDER BY h.generation;

-- name: served_elsewhere
-- If a generation ended at another gate, each served ticket has a coupon of that generation, or its user got a coupon directly, or the coupon is a dead letter or lost. This holds
-- once a later generation has a coupon, because all numbers of this one are known by then.
-- says: generation {generation} counts {served} tickets served, but {coupons} coupons name one, and only {others} others may have been issued directly, be dead letters or be lost
WITH has AS (
    SELECT COALESCE(generation, 0) AS generation, COUNT(*) AS coupons
    FROM coupons WHERE campaign_id = :campaign
    GROUP BY COALESCE(generation, 0)
),
others AS (
    SELECT COALESCE((SELECT coupons FROM has WHERE generation = 0), 0)
        + COALESCE((SELECT SUM(count) FROM lost WHERE campaign_id = :campaign), 0)
        + (SELECT COUNT(*) FROM dead_letters WHERE campaign_id = :campaign AND number > 0 AND (resolved_by IS NULL OR resolved_by = 'voided')) AS others,
        (SELECT MAX(generation) FROM has) AS latest
    FROM campaigns WHERE id = :campaign
)
SELECT p.generation, p.served, COALESCE(h.coupons, 0) AS coupons, o.others
FROM campaigns k CROSS JOIN others o JOIN past_lines p ON p.campaign_id = k.id LEFT JOIN has h ON h.generation = p.generation
WHERE k.id = :campaign AND k.gate <> 'ledger' AND k.last_number <= k.drained_through AND p.reason <> 'lost' AND p.generation < o.latest
  AND p.served > COALESCE(h.coupons, 0) + o.others
ORDER BY p.generation;

-- name: ended_in_order
-- At another gate, generations end in order, and no coupon of a generation was issued after its end.
-- says: generation {generation} ended at {ended_at}, but the one before it at {earlier_at}, and its last coupon was issued at {issued_at}
SELECT p.generation, p.ended_at, p.earlier_at, c.issued_at
FROM campaigns k
CROSS JOIN (SELECT generation, ended_at, LAG(ended_at) OVER (ORDER BY generation) AS earlier_at FROM past_lines WHERE campaign_id = :campaign AND reason <> 'lost') p
LEFT JOIN (SELECT generation, MAX(issued_at) AS issued_at FROM coupons WHERE campaign_id = :campaign AND ticket IS NOT NULL GROUP BY generation) c ON c.generation = p.generation
WHERE k.id = :campaign AND k.gate <> 'ledger' AND (p.ended_at < p.earlier_at OR p.ended_at < c.issued_at)
ORDER BY p.generation;
