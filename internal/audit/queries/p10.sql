-- name: ranks
-- A greater number has a greater rank, so no two coupons have one rank. The rank is the number minus the numbers that the coupon's terms skip. (Coupons of the same terms are compared
-- as one range. Coupons of terms that the ledger lost when a backup was restored are compared beside the queries.)
-- says: the numbers {first} to {last}, of the terms of version {terms_version}, begin at rank {first_rank}, but the lower number {lower_last}, of those of version {lower_terms}, has rank {lower_rank}
SELECT first, last, terms_version, first_rank, lower_last, lower_terms, lower_rank
FROM (
    SELECT r.first, r.last, r.terms_version, r.first - t.skipped AS first_rank,
        LAG(r.last) OVER (ORDER BY r.first) AS lower_last, LAG(r.terms_version) OVER (ORDER BY r.first) AS lower_terms, LAG(r.last - t.skipped) OVER (ORDER BY r.first) AS lower_rank
    FROM (SELECT MIN(number) AS first, MAX(number) AS last, terms_version FROM coupons WHERE campaign_id = :campaign GROUP BY terms_version) r
    JOIN changes t ON t.campaign_id = :campaign AND t.version = r.terms_version AND t.kind IN ('terms', 'reconcile')
) c
WHERE first_rank < 1 OR first_rank <= lower_rank
ORDER BY first;

-- name: skipped
-- Terms skip the numbers that the rebuilds before them skipped, so that ranks go on without a gap. A reconcile skips those that its gate's terms skipped, and never fewer than the terms before it.
-- says: the terms of version {version} skip {skipped} numbers, but the rebuilds before them skipped {rebuilt}, and the terms before them skip {before_it}
SELECT version, skipped, rebuilt, before_it
FROM (
    SELECT version, kind, skipped, SUM(CASE WHEN kind = 'terms' THEN 0 ELSE skipped END) OVER (PARTITION BY reconciles ORDER BY version) AS rebuilt,
        MAX(CASE WHEN kind = 'rebuild' THEN 0 ELSE skipped END) OVER (ORDER BY version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_it
    FROM (
        SELECT version, kind, skipped, SUM(CASE WHEN kind = 'reconcile' THEN 1 ELSE 0 END) OVER (ORDER BY version) AS reconciles
        FROM changes WHERE campaign_id = :campaign AND kind IN ('terms', 'rebuild', 'reconcile')
    ) h
) t
WHERE kind = 'terms' AND skipped <> rebuilt OR kind = 'reconcile' AND skipped < before_it
ORDER BY version;

-- name: skipped_next
-- A rebuild that skips numbers is followed by the terms that skip them, unless the campaign is closed. No other change skips numbers.
-- says: version {version}, a {kind}, skips {skipped} numbers, and version {next_version}, a {next_kind}, follows it
SELECT h.version, h.kind, h.skipped, n.version AS next_version, n.kind AS next_kind
FROM changes h LEFT JOIN changes n ON n.campaign_id = :campaign AND n.version = h.version + 1
WHERE h.campaign_id = :campaign AND h.skipped <> 0
  AND (h.kind NOT IN ('terms', 'rebuild', 'reconcile')
    OR h.kind = 'rebuild' AND (n.kind IS NULL OR n.kind <> 'terms')
      AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.campaign_id = :campaign AND c.version < h.version AND (c.kind = 'close' OR c.kind = 'reconcile' AND c.payload LIKE '%"closed":true%')))
ORDER BY h.version;

-- name: skipped_lost
-- The numbers that a rebuild skipped are the last ones of the epoch that it ended, and all of them are lost.
-- says: version {version} skipped {skipped} numbers, but the numbers that it lost do not end with as many
SELECT h.version, h.skipped
FROM changes h
WHERE h.campaign_id = :campaign AND h.kind = 'rebuild' AND h.skipped <> 0
  AND NOT EXISTS (
    SELECT 1 FROM lost l
    WHERE l.campaign_id = :campaign AND h.skipped BETWEEN 1 AND l.count AND h.payload LIKE CONCAT('{"epoch":', l.epoch, ',"through":', l.number + l.count - 1, ',%')
  )
ORDER BY h.version;
