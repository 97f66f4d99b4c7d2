-- name: tenants_with_news
-- Tenants that may have events for a webhook; asked without a tenant.
SELECT tenant_id FROM tenants_with_webhook_news(:overlap);

-- name: lock_watches
-- Lock the enabled webhooks, or one of them (:only); those that another worker has locked are left to it.
SELECT id, event_types, graph_ids, greatest(looked_at - :overlap::interval, told_from) AS since,
    clock_timestamp() AS now
FROM webhooks
WHERE tenant_id = :tenant_id AND enabled AND (:only::uuid IS NULL OR id = :only)
ORDER BY id
FOR NO KEY UPDATE SKIP LOCKED;

-- name: record_read
-- All events up to a time were sent.
UPDATE webhooks SET looked_at = :looked_at WHERE tenant_id = :tenant_id AND id = :webhook_id AND looked_at < :looked_at;

-- name: add_cursors
-- Begin graphs that a webhook does not have at their first revision; at most :limit.
WITH added AS (
    INSERT INTO webhook_cursors (tenant_id, webhook_id, graph_id, revision)
    SELECT :tenant_id, :webhook_id, graph.id, 0 FROM graphs graph
    WHERE graph.tenant_id = :tenant_id AND (:graph_ids::uuid[] IS NULL OR graph.id = ANY (:graph_ids::uuid[]))
        AND NOT EXISTS (
            SELECT 1 FROM webhook_cursors cursor
            WHERE cursor.tenant_id = :tenant_id AND cursor.webhook_id = :webhook_id AND cursor.graph_id = graph.id
        )
    ORDER BY graph.id
    LIMIT :limit
    ON CONFLICT (tenant_id, webhook_id, graph_id) DO NOTHING
    RETURNING graph_id
)
SELECT graph.id AS graph_id, graph.created_at, graph.created_by
FROM added JOIN graphs graph ON graph.tenant_id = :tenant_id AND graph.id = added.graph_id
ORDER BY graph.id;

-- name: advance_cursors
-- Revisions of graphs that were not sent to a webhook, at most :max_changes of each and :limit graphs, those first that
-- wait longest; they count as sent. Revisions have no gaps, and a head moves with its change. A graph that is being
-- deleted is left out.
WITH news AS MATERIALIZED (
    SELECT cursor.graph_id, cursor.revision AS after_revision,
        least(head.revision, cursor.revision + :max_changes) AS revision, head.at
    FROM webhook_cursors cursor
    JOIN graph_heads head ON head.tenant_id = :tenant_id AND head.graph_id = cursor.graph_id
        AND head.revision > cursor.revision
    JOIN graphs graph ON graph.tenant_id = :tenant_id AND graph.id = cursor.graph_id
    WHERE cursor.tenant_id = :tenant_id AND cursor.webhook_id = :webhook_id
    ORDER BY head.at
    LIMIT :limit
    FOR KEY SHARE OF graph SKIP LOCKED
), reported AS (
    UPDATE webhook_cursors cursor SET revision = news.revision FROM news
    WHERE cursor.tenant_id = :tenant_id AND cursor.webhook_id = :webhook_id AND cursor.graph_id = news.graph_id
    RETURNING cursor.graph_id
)
SELECT news.graph_id, news.after_revision, news.revision, news.at FROM news
JOIN reported ON reported.graph_id = news.graph_id ORDER BY news.at;

-- name: remove_cursors_of_deleted
-- Graphs that a webhook knows and that are no more; at most :limit.
DELETE FROM webhook_cursors
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND graph_id = ANY (ARRAY(
    SELECT c.graph_id FROM webhook_cursors c
    WHERE c.tenant_id = :tenant_id AND c.webhook_id = :webhook_id
        AND NOT EXISTS (SELECT 1 FROM graphs g WHERE g.tenant_id = :tenant_id AND g.id = c.graph_id)
    LIMIT :limit
))
RETURNING graph_id;

-- name: keep_cursors
-- Forget the graphs of a webhook but these (:graph_ids, null: all), or all if it gets no events of graphs (:graphs
-- false).
DELETE FROM webhook_cursors
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id
    AND (NOT :graphs OR :graph_ids::uuid[] IS NOT NULL AND graph_id <> ALL (:graph_ids::uuid[]));

-- name: set_cursors
-- Begin these graphs of a webhook (:graph_ids, null: all) at their newest revision; graphs that it has go on from where
-- they were, unless :anew.
INSERT INTO webhook_cursors AS c (tenant_id, webhook_id, graph_id, revision)
SELECT :tenant_id, :webhook_id, h.graph_id, h.revision FROM graph_heads h
WHERE h.tenant_id = :tenant_id AND (:graph_ids::uuid[] IS NULL OR h.graph_id = ANY (:graph_ids::uuid[]))
ORDER BY h.graph_id
ON CONFLICT (tenant_id, webhook_id, graph_id) DO UPDATE SET revision = EXCLUDED.revision WHERE :anew;

-- name: find_ended_jobs
-- Jobs that ended since a time, of these graphs (:graph_ids, null: all), that were not sent to a webhook; at most
-- :limit.
SELECT j.id, j.kind, j.graph_id, j.status, j.error_code, j.created_by, j.finished_at
FROM jobs j
WHERE j.tenant_id = :tenant_id AND j.finished_at > :since
    AND CASE WHEN j.status = 'failed' THEN 'job.failed' ELSE 'job.finished' END = ANY (:event_types::text[])
    AND (:graph_ids::uuid[] IS NULL OR j.graph_id = ANY (:graph_ids::uuid[]))
    AND NOT EXISTS (
        SELECT 1 FROM webhook_deliveries d
        WHERE d.tenant_id = :tenant_id AND d.webhook_id = :webhook_id AND d.source = 'job:' || j.id
    )
ORDER BY j.finished_at
LIMIT :limit;

-- name: find_keys
-- Keys that were made or revoked since a time, and were not sent to a webhook; at most :limit.
SELECT e.id, e.event_type, e.kind, e.created_by, e.at
FROM (
    SELECT id, 'key.created' AS event_type, kind, created_by, created_at AS at FROM api_keys
    WHERE tenant_id = :tenant_id AND created_at > :since
    UNION ALL
    SELECT id, 'key.revoked', kind, created_by, revoked_at FROM api_keys
    WHERE tenant_id = :tenant_id AND revoked_at > :since
) AS e
WHERE e.event_type = ANY (:event_types::text[]) AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries d
    WHERE d.tenant_id = :tenant_id AND d.webhook_id = :webhook_id AND d.source = e.event_type || ':' || e.id
)
ORDER BY e.at
LIMIT :limit;

-- name: find_joined_members
-- Members who joined since a time, and were not sent to a webhook; at most :limit. One who left and joined again joined
-- twice.
SELECT m.person_id, m.role, m.created_at, m.source
FROM (
    SELECT person_id, role, created_at, 'member.joined:' || person_id || ':' || extract(epoch FROM created_at) AS source
    FROM members
    WHERE tenant_id = :tenant_id AND created_at > :since
) AS m
WHERE NOT EXISTS (
    SELECT 1 FROM webhook_deliveries d
    WHERE d.tenant_id = :tenant_id AND d.webhook_id = :webhook_id AND d.source = m.source
)
ORDER BY m.created_at
LIMIT :limit;

-- name: find_removed_members
-- Members who were removed or left since a time, by the audit log, and were not sent to a webhook; at most :limit.
SELECT a.id AS entry_id, split_part(a.objects[1], ':', 2) AS person, a.details ->> 'was' AS role, a.at
FROM audit_log a
WHERE a.tenant_id = :tenant_id AND a.at > :since AND a.action = 'member.removed'
    AND NOT EXISTS (
        SELECT 1 FROM webhook_deliveries d
        WHERE d.tenant_id = :tenant_id AND d.webhook_id = :webhook_id AND d.source = 'member.removed:' || a.id
    )
ORDER BY a.at
LIMIT :limit;
