-- name: two_in_force
-- A user has at most one coupon in force. (The comment is a hint for MariaDB 10.11: in a trial with a million coupons the query took ten times as long without it. Other databases ignore it.)
-- says: the user "{user_id}" has {coupons} coupons in force
SELECT /*! SQL_BIG_RESULT */ user_id, COUNT(*) AS coupons
FROM coupons
WHERE campaign_id = :campaign AND voided_at IS NULL
GROUP BY user_id
HAVING COUNT(*) > 1
ORDER BY user_id;

-- name: again
-- A user got another coupon only after the earlier coupon was voided. If another gate decides, its clock is not the ledger's, so the order of the facts is compared. Each void is a
-- fact of its own.
-- says: the user "{user_id}" was issued number {number} while number {earlier} was in force
WITH taken AS (
    SELECT c.user_id, c.number, c.issued_at, c.position,
        LAG(c.number) OVER (PARTITION BY c.user_id ORDER BY c.number) AS earlier,
        LAG(c.voided_at) OVER (PARTITION BY c.user_id ORDER BY c.number) AS voided_at,
        LAG(f.position) OVER (PARTITION BY c.user_id ORDER BY c.number) AS void_position
    FROM coupons c
    LEFT JOIN (SELECT number, MIN(position) AS position FROM facts WHERE campaign_id = :campaign AND kind = 'coupon.voided' GROUP BY number) f ON f.number = c.number
    WHERE c.campaign_id = :campaign
      AND c.user_id IN (SELECT user_id FROM coupons WHERE campaign_id = :campaign AND voided_at IS NOT NULL)
)
SELECT t.user_id, t.number, t.earlier
FROM campaigns k CROSS JOIN taken t
WHERE k.id = :campaign AND t.earlier IS NOT NULL
  AND CASE WHEN k.gate = 'ledger' THEN t.voided_at IS NULL OR t.voided_at > t.issued_at ELSE t.void_position IS NULL OR t.void_position > t.position END
ORDER BY t.number;
