-- name: in_window
-- Each coupon was issued by existing terms, within their window and, if the ledger decides, while they were in force. A direct issue may come before the opening. Terms that the
-- ledger lost when a backup was restored are not checked.
-- says: number {number} was issued at {issued_at} by the terms of version {terms_version}, of {changed_at} to {until_at}, whose window is {opens_at} to {closes_at}
WITH terms AS (
    SELECT version, opens_at, closes_at, changed_at, LEAD(changed_at) OVER (ORDER BY version) AS until_at
    FROM changes WHERE campaign_id = :campaign AND kind IN ('terms', 'reconcile') AND NOT refused
)
SELECT c.number, c.issued_at, c.terms_version, t.changed_at, t.until_at, t.opens_at, t.closes_at
FROM campaigns k CROSS JOIN coupons c LEFT JOIN terms t ON t.version = c.terms_version
WHERE k.id = :campaign AND c.campaign_id = :campaign
  AND (t.version IS NULL AND NOT EXISTS (SELECT 1 FROM changes h WHERE h.campaign_id = :campaign AND h.kind = 'reconcile' AND h.version > c.terms_version)
    OR c.issued_at < t.opens_at AND NOT c.direct
    OR c.issued_at >= t.closes_at
    OR k.gate = 'ledger' AND (c.issued_at < t.changed_at OR c.issued_at > t.until_at))
ORDER BY c.number;

-- name: barred
-- No coupon was issued after the close, or during a pause unless directly. A coupon and a change with the same time may have come in either order. If another gate decides, this is
-- not checked: the ledger does not know when that gate applied the change.
-- says: number {number} was issued at {issued_at}, after the {kind} at {changed_at}
WITH turns AS (
    SELECT kind, changed_at, ROW_NUMBER() OVER (ORDER BY changed_at, version) AS nth
    FROM changes WHERE campaign_id = :campaign AND kind IN ('pause', 'resume', 'close')
),
moments AS (
    SELECT changed_at AS at, 1 AS turn, NULL AS number, NULL AS direct FROM turns
    UNION ALL
    SELECT c.issued_at, NULL, c.number, CASE WHEN c.direct THEN 1 ELSE 0 END
    FROM campaigns k CROSS JOIN coupons c
    WHERE k.id = :campaign AND k.gate = 'ledger' AND c.campaign_id = :campaign AND EXISTS (SELECT 1 FROM turns)
),
issued AS (SELECT number, at, direct, COUNT(turn) OVER (ORDER BY at) AS nth FROM moments)
SELECT i.number, i.at AS issued_at, t.kind, t.changed_at
FROM issued i JOIN turns t ON t.nth = i.nth
WHERE i.number IS NOT NULL AND t.kind <> 'resume' AND i.at > t.changed_at AND NOT (i.direct = 1 AND t.kind = 'pause')
ORDER BY i.number;

-- name: first
-- breaks: changes
-- The first change creates the campaign, at the time in its row.
-- says: the campaign was created at {created_at}, but its first change is version {version}, of the kind {kind}, at {changed_at}; it must be version 1, of the kind terms
SELECT k.created_at, h.version, h.kind, h.changed_at
FROM campaigns k
LEFT JOIN changes h ON h.campaign_id = k.id AND h.version = (SELECT MIN(version) FROM changes WHERE campaign_id = :campaign)
WHERE k.id = :campaign AND (h.version IS NULL OR h.version <> 1 OR h.kind <> 'terms' OR h.changed_at <> k.created_at);

-- name: numbering
-- breaks: changes
-- The changes are numbered without a gap, in the order of their times. Only a reconcile skips numbers, namely those that the restored ledger had forgotten.
-- says: version {version} of {changed_at} follows version {earlier} of {earlier_at}
SELECT version, changed_at, earlier, earlier_at
FROM (
    SELECT version, kind, changed_at, LAG(version) OVER (ORDER BY version) AS earlier, LAG(changed_at) OVER (ORDER BY version) AS earlier_at
    FROM changes WHERE campaign_id = :campaign
) h
WHERE version > earlier + 1 AND kind <> 'reconcile' OR changed_at < earlier_at
ORDER BY version;

-- name: refused
-- breaks: changes
-- Only another gate refuses changes, and only changes of terms.
-- says: version {version}, a {kind}, was refused, but only another gate refuses changes, and only changes of terms
SELECT h.version, h.kind
FROM campaigns k JOIN changes h ON h.campaign_id = k.id
WHERE k.id = :campaign AND h.refused AND (k.gate = 'ledger' OR h.kind <> 'terms')
ORDER BY h.version;

-- name: version
-- breaks: changes
-- The campaign's row has the version of the last change. The gate has all changes, or another gate lacks the last one.
-- says: the campaign is at version {version}, but its changes end at {last}; the gate has those up to {applied}, is in epoch {epoch}, and was rebuilt {rebuilds} times
SELECT k.version, h.last, k.applied, k.epoch, h.rebuilds
FROM campaigns k
CROSS JOIN (SELECT COALESCE(MAX(version), 0) AS last, COALESCE(SUM(CASE WHEN kind = 'rebuild' THEN 1 ELSE 0 END), 0) AS rebuilds FROM changes WHERE campaign_id = :campaign) h
WHERE k.id = :campaign
  AND (k.version <> h.last OR CASE WHEN k.gate = 'ledger' THEN k.applied <> k.version OR k.epoch <> 1
    ELSE k.applied > k.version OR k.applied < k.version - 1 OR k.epoch < 1 + h.rebuilds END);

-- name: terms
-- breaks: changes
-- The campaign has the quantity and the window of its last terms. Voids that burn lower the quantity. A lower quantity in terms, and prizes that move, are only proposed until another gate has applied them.
-- says: the campaign has the terms of version {terms_version}, quantity {quantity}, window {opens_at} to {closes_at}; its changes have version {version}, quantity {its_quantity}, window {its_opens_at} to {its_closes_at}
WITH terms AS (
    SELECT version, kind, quantity, opens_at, closes_at, CASE WHEN payload LIKE '%"before_number":%' THEN 1 ELSE 0 END AS moves,
        LAG(quantity) OVER (ORDER BY version) AS quantity_before, LAG(version) OVER (ORDER BY version) AS earlier
    FROM changes WHERE campaign_id = :campaign AND kind IN ('terms', 'reconcile') AND NOT refused
),
in_force AS (
    SELECT MAX(t.version) AS version
    FROM campaigns k CROSS JOIN terms t
    WHERE k.id = :campaign
      AND NOT (k.gate <> 'ledger' AND t.kind = 'terms' AND t.version > k.applied AND t.earlier IS NOT NULL
        AND (t.quantity IS NOT NULL AND (t.quantity_before IS NULL OR t.quantity < t.quantity_before) OR t.moves = 1 AND k.terms_version < t.version))
)
SELECT k.terms_version, k.quantity, k.opens_at, k.closes_at, t.version, t.quantity - b.burnt AS its_quantity, t.opens_at AS its_opens_at, t.closes_at AS its_closes_at
FROM campaigns k CROSS JOIN in_force i JOIN terms t ON t.version = i.version
CROSS JOIN (SELECT COUNT(*) AS burnt FROM in_force i JOIN changes v ON v.campaign_id = :campaign AND v.version > i.version AND v.kind = 'void' AND v.payload LIKE '%"burns":true%') b
WHERE k.id = :campaign
  AND (k.terms_version <> t.version OR COALESCE(k.quantity, -1) <> COALESCE(t.quantity - b.burnt, -1)
    OR COALESCE(k.opens_at, -1) <> COALESCE(t.opens_at, -1) OR COALESCE(k.closes_at, -1) <> COALESCE(t.closes_at, -1));

-- name: phase
-- breaks: changes
-- The campaign is paused and closed according to its changes since the last reconcile. One that burns begins paused.
-- says: the campaign is paused: {paused}, closed: {closed}; by its changes paused: {was_paused}, closed: {was_closed}
SELECT CASE WHEN k.paused THEN 'yes' ELSE 'no' END AS paused, CASE WHEN k.closed THEN 'yes' ELSE 'no' END AS closed,
    CASE WHEN t.last_pause > t.last_resume OR k.burns AND t.last_resume = 0 THEN 'yes' ELSE 'no' END AS was_paused, CASE WHEN t.closes > 0 THEN 'yes' ELSE 'no' END AS was_closed
FROM campaigns k
CROSS JOIN (
    SELECT COALESCE(MAX(CASE WHEN kind = 'pause' THEN version END), 0) AS last_pause, COALESCE(MAX(CASE WHEN kind = 'resume' THEN version END), 0) AS last_resume,
        COALESCE(SUM(CASE WHEN kind = 'close' THEN 1 ELSE 0 END), 0) AS closes, COALESCE(MAX(CASE WHEN kind = 'reconcile' THEN version END), 0) AS reconcile
    FROM changes WHERE campaign_id = :campaign
) t
WHERE k.id = :campaign
  AND ((t.reconcile = 0 OR t.last_pause > t.reconcile OR t.last_resume > t.reconcile) AND CASE WHEN k.paused THEN 1 ELSE 0 END <> CASE WHEN t.last_pause > t.last_resume OR k.burns AND t.last_resume = 0 THEN 1 ELSE 0 END
    OR t.reconcile = 0 AND CASE WHEN k.closed THEN 1 ELSE 0 END <> CASE WHEN t.closes > 0 THEN 1 ELSE 0 END);

-- name: turns
-- breaks: changes
-- A pause, a resume and a close each change something, and only a reconcile may follow a close.
-- says: version {version}, a {kind}, changes nothing, because version {earlier}, a {earlier_kind}, came before it
SELECT version, kind, earlier, earlier_kind
FROM (
    SELECT h.version, h.kind, LAG(h.version) OVER (ORDER BY h.version) AS earlier, LAG(h.kind) OVER (ORDER BY h.version) AS earlier_kind, CASE WHEN k.burns THEN 1 ELSE 0 END AS burns
    FROM campaigns k JOIN changes h ON h.campaign_id = k.id
    WHERE k.id = :campaign AND h.kind IN ('pause', 'resume', 'close', 'reconcile')
) h
WHERE kind = 'pause' AND (earlier_kind = 'pause' OR earlier_kind IS NULL AND burns = 1) OR kind = 'resume' AND (earlier_kind IS NULL AND burns = 0 OR earlier_kind = 'resume') OR kind <> 'reconcile' AND earlier_kind = 'close'
ORDER BY version;

-- name: terms_after_close
-- breaks: changes
-- No terms change after a close, except by a reconcile.
-- says: version {version} changes the terms of a campaign that version {closed} closed
SELECT h.version, c.version AS closed
FROM changes c JOIN changes h ON h.campaign_id = c.campaign_id AND h.version > c.version
WHERE c.campaign_id = :campaign AND c.kind = 'close' AND h.kind = 'terms' AND NOT h.refused
  AND NOT EXISTS (SELECT 1 FROM changes r WHERE r.campaign_id = :campaign AND r.kind = 'reconcile' AND r.version > c.version AND r.version < h.version)
ORDER BY h.version;

-- name: closed
-- breaks: changes
-- The campaign was closed at the time of its change. The row of a retired campaign has the time by its gate's clock.
-- says: an operator closed the campaign at {closed_at}, but by its changes at {changed_at}
SELECT k.closed_at, h.changed_at
FROM campaigns k
CROSS JOIN (SELECT MIN(changed_at) AS changed_at FROM changes WHERE campaign_id = :campaign AND kind = 'close') h
WHERE k.id = :campaign
  AND CASE WHEN EXISTS (SELECT 1 FROM changes r WHERE r.campaign_id = :campaign AND r.kind = 'reconcile') THEN k.closed AND k.closed_at IS NULL OR NOT k.closed AND k.closed_at IS NOT NULL
    WHEN k.gate <> 'ledger' AND k.retired_at IS NOT NULL AND k.closed_at IS NOT NULL THEN h.changed_at IS NULL
    ELSE COALESCE(k.closed_at, -1) <> COALESCE(h.changed_at, -1) END;

-- name: retired
-- breaks: changes
-- Only a campaign of another gate is retired, after it is closed, and only a retired campaign is deleted at its gate.
-- says: the campaign was retired at {retired_at} and deleted at its gate at {forgotten_at}, but its window closes at {closes_at}
SELECT retired_at, forgotten_at, closes_at
FROM campaigns
WHERE id = :campaign
  AND (retired_at IS NOT NULL AND (gate = 'ledger' OR NOT closed AND (closes_at IS NULL OR closes_at > retired_at))
    OR forgotten_at IS NOT NULL AND (retired_at IS NULL OR forgotten_at < retired_at));

-- name: opened
-- breaks: counters
-- The campaign had opened when its first coupon or ticket was issued and, if the ledger decides, not before it was created. Another gate keeps the time of the opening until the
-- campaign is retired.
-- says: the campaign opened at {opened_at}, was created at {created_at}, and its first coupon or ticket is of {first_at}
SELECT k.opened_at, k.created_at, f.first_at
FROM campaigns k
CROSS JOIN (
    SELECT MIN(at) AS first_at
    FROM (
        SELECT MIN(issued_at) AS at FROM coupons WHERE campaign_id = :campaign AND NOT direct
        UNION ALL
        SELECT MIN(joined_at) FROM tickets WHERE campaign_id = :campaign
    ) a
) f
WHERE k.id = :campaign
  AND CASE WHEN k.gate <> 'ledger' AND k.retired_at IS NULL THEN k.opened_at IS NOT NULL
    ELSE f.first_at IS NOT NULL AND (k.opened_at IS NULL OR k.opened_at > f.first_at) OR k.gate = 'ledger' AND k.opened_at < k.created_at END;

-- name: sold_out
-- breaks: counters
-- If the ledger decides, the campaign sold out when a coupon or new terms first left no stock. In one that burns, a void lowers the quantity, too. Another gate keeps that time until the campaign is retired. Then the whole quantity
-- is in force, or something has changed since.
-- says: the campaign first sold out at {sold_out_at}, but by its coupons and changes at {left_nothing_at}
WITH totals AS (SELECT terms_version, COUNT(*) AS coupons, MAX(number) AS number FROM coupons WHERE campaign_id = :campaign GROUP BY terms_version),
ends AS (
    SELECT number + count - 1 AS number FROM facts WHERE campaign_id = :campaign AND kind = 'coupon.issued'
    UNION
    SELECT number FROM totals
),
points AS (
    SELECT c.position, 0 AS voids, c.issued_at, c.terms_version
    FROM ends e LEFT JOIN coupons c ON c.campaign_id = :campaign AND c.number = e.number
    UNION ALL
    SELECT position, count, NULL, NULL FROM facts WHERE campaign_id = :campaign AND kind = 'coupon.voided'
),
stock AS (
    SELECT issued_at, terms_version, position - SUM(voids) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS issued,
        SUM(voids) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS voids
    FROM points
),
history AS (
    SELECT h.version, h.kind, h.quantity, h.changed_at, h.refused, SUM(CASE WHEN h.kind = 'void' THEN 1 ELSE 0 END) OVER (ORDER BY h.version ROWS UNBOUNDED PRECEDING) AS voids,
        COALESCE(SUM(t.coupons) OVER (ORDER BY h.version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
            - SUM(CASE WHEN h.kind = 'void' THEN 1 ELSE 0 END) OVER (ORDER BY h.version ROWS UNBOUNDED PRECEDING) AS in_force
    FROM changes h LEFT JOIN totals t ON t.terms_version = h.version
    WHERE h.campaign_id = :campaign
),
moments AS (
    SELECT s.issued_at AS at
    FROM campaigns k CROSS JOIN stock s JOIN history h ON h.version = s.terms_version AND h.kind IN ('terms', 'reconcile')
    WHERE k.id = :campaign AND s.issued - CASE WHEN k.burns THEN h.voids ELSE s.voids END >= h.quantity
    UNION ALL
    SELECT changed_at FROM history WHERE kind = 'terms' AND NOT refused AND quantity <= in_force
)
SELECT k.sold_out_at, e.at AS left_nothing_at
FROM campaigns k CROSS JOIN (SELECT MIN(at) AS at FROM moments) e
WHERE k.id = :campaign
  AND CASE WHEN k.gate = 'ledger' THEN COALESCE(k.sold_out_at, -1) <> COALESCE(e.at, -1)
    WHEN k.retired_at IS NULL THEN k.sold_out_at IS NOT NULL
    WHEN k.sold_out_at IS NULL THEN k.in_force >= k.quantity
    ELSE k.version = 1 AND (k.quantity IS NULL OR k.in_force < k.quantity OR k.sold_out_at < e.at) END;

-- name: decided
-- breaks: counters
-- Nothing of the campaign has a later time than its gate's last decision.
-- says: the gate's last decision was at {decided_at}, but something of the campaign is of {last_at}
SELECT k.decided_at, l.last_at
FROM campaigns k
CROSS JOIN (
    SELECT MAX(at) AS last_at
    FROM (
        SELECT MAX(issued_at) AS at FROM coupons WHERE campaign_id = :campaign
        UNION ALL
        SELECT MAX(changed_at) FROM changes WHERE campaign_id = :campaign
        UNION ALL
        SELECT MAX(CASE WHEN ended_at > joined_at THEN ended_at ELSE joined_at END) FROM tickets WHERE campaign_id = :campaign
        UNION ALL
        SELECT CASE WHEN retired_at > opened_at OR opened_at IS NULL THEN retired_at ELSE opened_at END FROM campaigns WHERE id = :campaign
    ) a
) l
WHERE k.id = :campaign AND k.decided_at < l.last_at;
