-- name: order
-- A higher number was not issued before a lower number, nor by older terms. (Coupons with the same time and version of the terms are compared as one range.)
-- says: the numbers {first} to {last} were issued at {issued_at} by the terms of version {terms_version}, and the numbers {lower_first} to {lower_last} at {lower_at} by those of version {lower_terms}
SELECT first, last, issued_at, terms_version, lower_first, lower_last, lower_at, lower_terms
FROM (
    SELECT first, last, issued_at, terms_version,
        LAG(first) OVER (ORDER BY first) AS lower_first, LAG(last) OVER (ORDER BY first) AS lower_last,
        LAG(issued_at) OVER (ORDER BY first) AS lower_at, LAG(terms_version) OVER (ORDER BY first) AS lower_terms
    FROM (SELECT MIN(number) AS first, MAX(number) AS last, issued_at, terms_version FROM coupons WHERE campaign_id = :campaign GROUP BY issued_at, terms_version) r
) c
WHERE first <= lower_last OR issued_at < lower_at OR terms_version < lower_terms
ORDER BY first;

-- name: missing
-- Every number is a coupon, a dead letter, or lost: up to the campaign's last number or, if another gate decides, up to the drained number.
-- says: of the numbers up to {through}, {coupons} are coupons, {letters} others are dead letters and {lost} are lost
SELECT through, coupons, letters, lost
FROM (
    SELECT t.through,
        (SELECT COUNT(*) FROM coupons c WHERE c.campaign_id = :campaign AND c.number <= t.through) AS coupons,
        (SELECT COUNT(DISTINCT d.number) FROM dead_letters d WHERE d.campaign_id = :campaign AND d.number > 0 AND d.number <= t.through AND (d.resolved_by IS NULL OR d.resolved_by = 'voided')
            AND NOT EXISTS (SELECT 1 FROM coupons c WHERE c.campaign_id = :campaign AND c.number = d.number)) AS letters,
        (SELECT COALESCE(SUM(count), 0) FROM lost l WHERE l.campaign_id = :campaign AND l.number <= t.through) AS lost
    FROM (SELECT CASE WHEN gate = 'ledger' THEN last_number ELSE drained_through END AS through FROM campaigns WHERE id = :campaign) t
) n
WHERE coupons + letters + lost <> through;

-- name: coupon_and_letter
-- No number is both a coupon and an open dead letter.
-- says: number {number} is a coupon, and a dead letter for the user "{user_id}"
SELECT d.number, d.user_id
FROM dead_letters d JOIN coupons c ON c.campaign_id = d.campaign_id AND c.number = d.number
WHERE d.campaign_id = :campaign AND d.resolved_at IS NULL
ORDER BY d.number;

-- name: coupon_and_lost
-- No number is both a coupon and lost.
-- says: number {number} is a coupon, but the numbers {first} to {last} were lost
SELECT MIN(c.number) AS number, l.number AS first, l.number + l.count - 1 AS last
FROM lost l CROSS JOIN coupons c
WHERE l.campaign_id = :campaign AND c.campaign_id = :campaign AND c.number >= l.number AND c.number < l.number + l.count
GROUP BY l.number, l.count
ORDER BY l.number;

-- name: lost_twice
-- No number was lost twice.
-- says: number {number} was lost twice
SELECT number
FROM (SELECT number, LAG(number + count - 1) OVER (ORDER BY number) AS reaches FROM lost WHERE campaign_id = :campaign) l
WHERE number <= reaches
ORDER BY number;

-- name: lost_before
-- breaks: changes
-- Numbers are lost when an epoch ends. The epoch that then begins is at least 2, and does not decrease with rising numbers.
-- says: the numbers from {number} on were lost before epoch {epoch}, the campaign is in epoch {now}, and the numbers before them were lost before epoch {earlier}
SELECT l.number, l.epoch, k.epoch AS now, l.earlier
FROM campaigns k
CROSS JOIN (SELECT number, epoch, LAG(epoch) OVER (ORDER BY number) AS earlier FROM lost WHERE campaign_id = :campaign) l
WHERE k.id = :campaign AND l.epoch <> 0 AND (l.epoch < 2 OR l.epoch > k.epoch OR l.epoch < l.earlier)
ORDER BY l.number;

-- name: last_number
-- breaks: counters
-- The campaign's last number is the number of a coupon or a dead letter.
-- says: the campaign's last number is {last_number}, but the highest number of its coupons and dead letters is {highest}
SELECT k.last_number, n.highest
FROM campaigns k
CROSS JOIN (
    SELECT COALESCE(MAX(number), 0) AS highest
    FROM (
        SELECT MAX(number) AS number FROM coupons WHERE campaign_id = :campaign
        UNION ALL
        SELECT MAX(number) FROM dead_letters WHERE campaign_id = :campaign
    ) m
) n
WHERE k.id = :campaign AND k.last_number <> n.highest;

-- name: letters
-- breaks: counters
-- The campaign's row counts its dead letters that have a number.
-- says: the campaign has {letters} dead letters with numbers, by its row {dead_letters}
SELECT k.dead_letters, d.letters
FROM campaigns k
CROSS JOIN (SELECT COUNT(*) AS letters FROM dead_letters WHERE campaign_id = :campaign AND number > 0) d
WHERE k.id = :campaign AND k.dead_letters <> d.letters;

-- name: drained
-- breaks: counters
-- The campaign is drained at least up to the last of its recorded numbers without a gap. If the ledger decides, there is no journal to drain.
-- says: numbers are drained up to {drained_through}, although the ledger has the next number too, or decides the campaign itself
SELECT k.drained_through
FROM campaigns k
WHERE k.id = :campaign AND CASE WHEN k.gate = 'ledger' THEN k.drained_through <> 0 ELSE
        EXISTS (SELECT 1 FROM coupons c WHERE c.campaign_id = :campaign AND c.number = k.drained_through + 1)
        OR EXISTS (SELECT 1 FROM dead_letters d WHERE d.campaign_id = :campaign AND d.number = k.drained_through + 1)
        OR EXISTS (SELECT 1 FROM lost l WHERE l.campaign_id = :campaign AND l.number <= k.drained_through + 1 AND l.number + l.count > k.drained_through + 1)
    END;
