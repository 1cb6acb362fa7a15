-- name: key_log
-- Each API key was created and revoked when the audit log says so.
-- says: at {at} {made} keys were created or revoked, and {log_lines} lines of the audit log call it {action}
SELECT at, action, SUM(of_key) AS made, SUM(logged) AS log_lines
FROM (
    SELECT created_at AS at, 'key.create' AS action, 1 AS of_key, 0 AS logged FROM api_keys
    UNION ALL
    SELECT revoked_at, 'key.revoke', 1, 0 FROM api_keys WHERE revoked_at IS NOT NULL
    UNION ALL
    SELECT at, action, 0, 1 FROM audit_log WHERE action IN ('key.create', 'key.revoke')
) k
GROUP BY at, action
HAVING SUM(of_key) <> SUM(logged)
ORDER BY at, action;

-- name: key_made
-- The audit log's line about the creation of a key names the key and its role.
-- says: no line of the audit log says that the key "{id}", with the role {role}, was created at {created_at}
SELECT k.id, k.role, k.created_at
FROM api_keys k
WHERE NOT EXISTS (
    SELECT 1 FROM audit_log l
    WHERE l.action = 'key.create' AND l.at = k.created_at AND l.detail LIKE CONCAT('%"key":"', k.id, '"%') AND l.detail LIKE CONCAT('%"role":"', k.role, '"%')
)
ORDER BY k.id;

-- name: letters_of_none
-- breaks: log
-- Each resolved dead letter that belongs to no campaign has a line in the audit log with the same time.
-- says: at {at} {resolved} dead letters that belong to no campaign were resolved as {action}, and the audit log has {log_lines} such lines
SELECT at, action, SUM(resolved) AS resolved, SUM(logged) AS log_lines
FROM (
    SELECT resolved_at AS at, CASE WHEN resolved_by = 'voided' THEN 'dead_letter.void' ELSE 'dead_letter.replay' END AS action, 1 AS resolved, 0 AS logged
    FROM dead_letters
    WHERE resolved_at IS NOT NULL AND (campaign_id IS NULL OR NOT EXISTS (SELECT 1 FROM campaigns k WHERE k.id = campaign_id))
    UNION ALL
    SELECT at, action, 0, 1
    FROM audit_log
    WHERE action IN ('dead_letter.void', 'dead_letter.replay') AND (campaign_id IS NULL OR NOT EXISTS (SELECT 1 FROM campaigns k WHERE k.id = campaign_id))
) l
GROUP BY at, action
HAVING SUM(resolved) <> SUM(logged)
ORDER BY at, action;

-- name: log_of_none
-- breaks: log
-- The audit log names only campaigns that have a row. If another table or the line about its creation names such a campaign, no_campaign finds it. A dead letter that was resolved
-- may name a campaign that never was.
-- says: {log_lines} lines of the audit log, the first at {at}, name the campaign "{campaign}", which has no row
SELECT l.campaign_id AS campaign, COUNT(*) AS log_lines, MIN(l.at) AS at
FROM audit_log l
WHERE l.campaign_id IS NOT NULL AND l.action NOT IN ('dead_letter.void', 'dead_letter.replay')
  AND NOT EXISTS (SELECT 1 FROM campaigns k WHERE k.id = l.campaign_id)
  AND NOT EXISTS (SELECT 1 FROM audit_log c WHERE c.campaign_id = l.campaign_id AND c.action = 'campaign.create')
GROUP BY l.campaign_id
ORDER BY l.campaign_id;
