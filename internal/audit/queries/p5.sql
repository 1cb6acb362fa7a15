-- name: no_campaign
-- A campaign that other tables name has a row.
-- says: the ledger has no row of the campaign, although other tables name it
SELECT 1 AS told
WHERE NOT EXISTS (SELECT 1 FROM campaigns WHERE id = :campaign);

-- name: dense
-- breaks: facts
-- The positions of facts have no gap.
-- says: position {position} follows position {last}
SELECT position, last
FROM (
    SELECT position, COALESCE(LAG(position + count - 1) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING), 0) AS last
    FROM facts WHERE campaign_id = :campaign
) f
WHERE position <> last + 1
ORDER BY position;

-- name: facts_end
-- breaks: counters
-- The facts end at the position in the campaign's row. If the ledger decides, the last run of issues is written only when something else follows it.
-- says: the campaign's last position is {position}, but the facts end at {last}
SELECT k.position, f.last
FROM campaigns k
CROSS JOIN (SELECT COALESCE(MAX(position + count - 1), 0) AS last FROM facts WHERE campaign_id = :campaign) f
WHERE k.id = :campaign AND CASE WHEN k.gate = 'ledger' THEN k.position < f.last OR k.position - f.last > k.last_number ELSE k.position <> f.last END;

-- name: issued
-- Each fact of an issue names a coupon, and the coupon has the position of its fact. In a run of facts, the position minus the number is constant. So for each such difference,
-- facts and coupons must agree in their count and in the sum of their numbers.
-- says: facts whose position is {apart} above their number issue {numbers} numbers with the sum {of_facts}, but {coupons} coupons with the sum {of_coupons} have such a position
SELECT apart, SUM(in_run) AS numbers, SUM(twice) / 2 AS of_facts, SUM(coupon) AS coupons, SUM(number) AS of_coupons
FROM (
    SELECT position - number AS apart, count AS in_run, count * (2 * number + count - 1) AS twice, 0 AS coupon, 0 AS number
    FROM facts WHERE campaign_id = :campaign AND kind = 'coupon.issued'
    UNION ALL
    SELECT k.position - k.last_number, k.position - f.last, (k.position - f.last) * (2 * k.last_number - (k.position - f.last) + 1), 0, 0
    FROM campaigns k CROSS JOIN (SELECT COALESCE(MAX(position + count - 1), 0) AS last FROM facts WHERE campaign_id = :campaign) f
    WHERE k.id = :campaign AND k.gate = 'ledger' AND k.position > f.last
    UNION ALL
    SELECT position - number, 0, 0, COUNT(*), SUM(number) FROM coupons WHERE campaign_id = :campaign GROUP BY position - number
) n
GROUP BY apart
HAVING SUM(in_run) <> SUM(coupon) OR SUM(twice) <> 2 * SUM(number)
ORDER BY apart;

-- name: as_many
-- breaks: facts
-- There are as many facts of issues and voids as the campaign's row counts.
-- says: the facts issue {issues} numbers and void {voids}, but the campaign counts {issued} coupons issued and {in_force} in force
SELECT f.issues, f.voids, k.issued, k.in_force
FROM campaigns k
CROSS JOIN (
    SELECT SUM(CASE WHEN kind = 'coupon.issued' THEN count ELSE 0 END) AS issues, SUM(CASE WHEN kind = 'coupon.voided' THEN count ELSE 0 END) AS voids
    FROM (
        SELECT kind, count FROM facts WHERE campaign_id = :campaign
        UNION ALL
        SELECT 'coupon.issued', CASE WHEN k.gate = 'ledger' THEN k.position - f.last ELSE 0 END
        FROM campaigns k CROSS JOIN (SELECT COALESCE(MAX(position + count - 1), 0) AS last FROM facts WHERE campaign_id = :campaign) f
        WHERE k.id = :campaign
    ) r
) f
WHERE k.id = :campaign AND (f.issues <> k.issued OR f.issues - f.voids <> k.in_force);

-- name: voided
-- breaks: facts
-- Each fact of a void names one coupon that is voided and was issued before.
-- says: the fact at position {position} voids {count} numbers from {number} on, and is not one void of a coupon that was issued before
SELECT f.position, f.number, f.count
FROM facts f LEFT JOIN coupons c ON c.campaign_id = f.campaign_id AND c.number = f.number AND c.voided_at IS NOT NULL AND c.position < f.position
WHERE f.campaign_id = :campaign AND f.kind = 'coupon.voided' AND (f.count <> 1 OR c.number IS NULL)
ORDER BY f.position;

-- name: recorded
-- If the ledger decides, it records a coupon at the time at which it issues it.
-- says: number {number} was issued at {issued_at} and recorded at {recorded_at}, although the ledger does both at once
SELECT c.number, c.issued_at, c.recorded_at
FROM campaigns k CROSS JOIN coupons c
WHERE k.id = :campaign AND k.gate = 'ledger' AND c.campaign_id = :campaign AND c.recorded_at <> c.issued_at
ORDER BY c.number;

-- name: voids
-- breaks: changes
-- Only a voided coupon has a reason, and no coupon was voided before it was issued. After a reconcile the two times are of two clocks, and are not compared.
-- says: number {number} was issued at {issued_at} and voided at {voided_at}, because of "{void_reason}"
SELECT number, issued_at, voided_at, void_reason
FROM coupons
WHERE campaign_id = :campaign
  AND (voided_at IS NULL AND void_reason IS NOT NULL
    OR voided_at < issued_at AND NOT EXISTS (SELECT 1 FROM changes h WHERE h.campaign_id = :campaign AND h.kind = 'reconcile'))
ORDER BY number;

-- name: void_changes
-- breaks: changes
-- Each void of a coupon or of a dead letter is a change with the same time. A dead letter without a coupon, or from before the campaign, is voided without a change.
-- says: at {changed_at} {coupons} coupons and dead letters were voided, but there are {changes} changes for it
SELECT changed_at, SUM(coupon) AS coupons, SUM(changed) AS changes
FROM (
    SELECT voided_at AS changed_at, 1 AS coupon, 0 AS changed FROM coupons WHERE campaign_id = :campaign AND voided_at IS NOT NULL
    UNION ALL
    SELECT d.resolved_at, 1, 0
    FROM dead_letters d JOIN campaigns k ON k.id = d.campaign_id
    WHERE d.campaign_id = :campaign AND d.resolved_by = 'voided' AND d.number > 0 AND d.user_id IS NOT NULL AND d.resolved_at >= k.created_at
    UNION ALL
    SELECT changed_at, 0, 1 FROM changes WHERE campaign_id = :campaign AND kind = 'void'
) v
GROUP BY changed_at
HAVING SUM(coupon) <> SUM(changed)
ORDER BY changed_at;

-- name: replayed
-- A dead letter that was replayed is a coupon.
-- says: the dead letter {id} was replayed, but its number {number} is not a coupon
SELECT d.id, d.number
FROM dead_letters d LEFT JOIN coupons c ON c.campaign_id = d.campaign_id AND c.number = d.number
WHERE d.campaign_id = :campaign AND d.resolved_by = 'replayed' AND d.number > 0 AND c.number IS NULL
ORDER BY d.id;

-- name: log_changes
-- breaks: log
-- Each change has a line in the audit log with the same time.
-- says: at {at} there are {changes} changes of the kind {action}, but the audit log has {log_lines} lines about it
SELECT at, action, SUM(changed) AS changes, SUM(logged) AS log_lines
FROM (
    SELECT changed_at AS at, 1 AS changed, 0 AS logged,
        CASE WHEN version = 1 THEN 'campaign.create' WHEN kind = 'terms' THEN 'campaign.update' WHEN kind = 'void' THEN 'coupon.void' WHEN kind = 'pause' THEN 'campaign.pause'
            WHEN kind = 'resume' THEN 'campaign.resume' WHEN kind = 'close' THEN 'campaign.close' WHEN kind = 'rebuild' THEN 'campaign.rebuild' ELSE 'campaign.reconcile' END AS action
    FROM changes WHERE campaign_id = :campaign
    UNION ALL
    SELECT at, 0, 1, CASE WHEN action = 'dead_letter.void' THEN 'coupon.void' ELSE action END
    FROM audit_log
    WHERE campaign_id = :campaign AND (action LIKE 'campaign.%' AND action <> 'campaign.retire' OR action = 'coupon.void')
    UNION ALL
    SELECT l.at, 0, 1, 'coupon.void'
    FROM audit_log l JOIN campaigns k ON k.id = l.campaign_id
    WHERE l.campaign_id = :campaign AND l.action = 'dead_letter.void' AND l.number > 0 AND l.user_id IS NOT NULL AND l.at >= k.created_at
) l
GROUP BY at, action
HAVING SUM(changed) <> SUM(logged)
ORDER BY at, action;

-- name: log_voids
-- breaks: log
-- The audit log's line about a void names the coupon that was voided then, and its user.
-- says: line {id} of the audit log says that number {number} of the user "{user_id}" was voided at {at}, but no coupon was
SELECT l.id, l.number, l.user_id, l.at
FROM audit_log l LEFT JOIN coupons c
  ON c.campaign_id = l.campaign_id AND c.number = l.number AND c.user_id = l.user_id AND c.voided_at = l.at
WHERE l.campaign_id = :campaign AND l.action = 'coupon.void' AND c.number IS NULL
ORDER BY l.id;

-- name: log_letters
-- breaks: log
-- Each dead letter that an operator replayed or voided has a line in the audit log with the same time, number and user.
-- says: at {at} {resolved} dead letters with number {number} were resolved as {action}, but the audit log has {log_lines} lines about it
SELECT at, action, number, SUM(resolved) AS resolved, SUM(logged) AS log_lines
FROM (
    SELECT resolved_at AS at, CASE WHEN resolved_by = 'voided' THEN 'dead_letter.void' ELSE 'dead_letter.replay' END AS action, COALESCE(number, 0) AS number, user_id, 1 AS resolved, 0 AS logged
    FROM dead_letters WHERE campaign_id = :campaign AND resolved_at IS NOT NULL
    UNION ALL
    SELECT at, action, COALESCE(number, 0), user_id, 0, 1
    FROM audit_log WHERE campaign_id = :campaign AND action IN ('dead_letter.void', 'dead_letter.replay')
) l
GROUP BY at, action, number, user_id
HAVING SUM(resolved) <> SUM(logged)
ORDER BY at, action, number;

-- name: log_direct
-- breaks: log
-- If the ledger decides, each direct issue has a line in the audit log with the same time. If another gate decides, a node writes the line later, and may have died before that.
-- says: at {at} there are {issues} direct issues by the coupons, but {log_lines} by the audit log
SELECT at, SUM(issued) AS issues, SUM(logged) AS log_lines
FROM (
    SELECT DISTINCT c.issued_at AS at, 1 AS issued, 0 AS logged
    FROM campaigns k CROSS JOIN coupons c
    WHERE k.id = :campaign AND k.gate = 'ledger' AND c.campaign_id = :campaign AND c.direct
    UNION ALL
    SELECT DISTINCT l.at, 0, 1
    FROM campaigns k CROSS JOIN audit_log l
    WHERE k.id = :campaign AND k.gate = 'ledger' AND l.campaign_id = :campaign AND l.action = 'coupon.issue'
) d
GROUP BY at
HAVING SUM(issued) <> SUM(logged)
ORDER BY at;

-- name: log_retired
-- breaks: log
-- The retirement of a campaign has a line in the audit log with the same time.
-- says: the campaign was retired at {retired_at}, but by the audit log at {logged_at}
SELECT k.retired_at, l.at AS logged_at
FROM campaigns k
CROSS JOIN (SELECT MAX(at) AS at FROM audit_log WHERE campaign_id = :campaign AND action = 'campaign.retire') l
WHERE k.id = :campaign AND COALESCE(k.retired_at, -1) <> COALESCE(l.at, -1);
