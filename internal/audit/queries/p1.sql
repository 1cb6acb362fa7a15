-- name: in_force
-- No more coupons are in force than the quantity.
-- says: {in_force} coupons are in force, the quantity is {quantity}
SELECT in_force, quantity
FROM campaigns
WHERE id = :campaign AND in_force > quantity;

-- name: over
-- No issue ever left more coupons in force than the quantity of its terms. The number in force at a position is the number of positions up to it, minus two for each void among
-- them. Between two voids, under the same terms, it is highest at the last number. If another gate decides, a coupon may be recorded after a coupon of later terms. Then the limit
-- is the highest quantity that the campaign ever had.
-- says: with number {number}, {in_force} coupons were in force, and the quantity was {quantity}
WITH ends AS (
    SELECT number + count - 1 AS number FROM facts WHERE campaign_id = :campaign AND kind = 'coupon.issued'
    UNION
    SELECT MAX(number) FROM coupons WHERE campaign_id = :campaign GROUP BY terms_version
),
points AS (
    SELECT c.position, 0 AS voids, c.number, c.terms_version
    FROM ends e LEFT JOIN coupons c ON c.campaign_id = :campaign AND c.number = e.number
    UNION ALL
    SELECT position, count, NULL, NULL FROM facts WHERE campaign_id = :campaign AND kind = 'coupon.voided'
),
stock AS (SELECT number, terms_version, position - 2 * SUM(voids) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS in_force FROM points),
terms AS (
    SELECT h.version, CASE WHEN k.gate = 'ledger' THEN COALESCE(h.quantity, 9223372036854775807) ELSE m.quantity END AS quantity
    FROM campaigns k
    JOIN changes h ON h.campaign_id = k.id
    CROSS JOIN (SELECT MAX(COALESCE(quantity, 9223372036854775807)) AS quantity FROM changes WHERE campaign_id = :campaign AND kind IN ('terms', 'reconcile')) m
    WHERE k.id = :campaign AND h.kind IN ('terms', 'reconcile')
)
SELECT s.number, s.in_force, t.quantity
FROM stock s JOIN terms t ON t.version = s.terms_version
WHERE s.number IS NOT NULL AND s.in_force > t.quantity
ORDER BY s.number;

-- name: row_counts
-- breaks: counters
-- The campaign's row counts its coupons.
-- says: the campaign counts {issued} coupons issued and {in_force} in force, and it has {coupons}, of which {voided} are voided
SELECT k.issued, k.in_force, c.coupons, c.voided
FROM campaigns k CROSS JOIN (SELECT COUNT(*) AS coupons, COUNT(voided_at) AS voided FROM coupons WHERE campaign_id = :campaign) c
WHERE k.id = :campaign AND (k.issued <> c.coupons OR k.in_force <> c.coupons - c.voided);
