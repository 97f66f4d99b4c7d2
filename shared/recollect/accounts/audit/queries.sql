-- name: insert_entry
-- One act of a tenant.
INSERT INTO audit_log (tenant_id, id, actor, action, objects, address, trace_id, details)
VALUES (:tenant_id, :id, :actor, :action, :objects, :address, :trace_id, :details::text::jsonb);

-- name: count_acts
-- The number of acts of the tenant in 24 hours, counted up to :most, and of these by :actor.
SELECT count(*) AS acts, count(*) FILTER (WHERE actor = :actor) AS own FROM (
    SELECT actor FROM audit_log WHERE tenant_id = :tenant_id AND at > clock_timestamp() - interval '24 hours'
    ORDER BY at DESC
    LIMIT :most::bigint
) AS a;

-- name: insert_entries_of_person
-- One act of the person who has signed in, in the log of each of their tenants.
INSERT INTO audit_log (tenant_id, id, actor, action, objects, address, trace_id)
SELECT e.tenant_id, e.id, :actor, :action, :objects, :address, :trace_id
FROM unnest(:tenant_ids::uuid[], :ids::uuid[]) AS e (tenant_id, id);

-- name: list_entries
-- Entries before an id, newest first; at most :limit.
SELECT id, at, actor, action, objects, address, trace_id, details
FROM audit_log
WHERE tenant_id = :tenant_id AND (:before::uuid IS NULL OR id < :before)
    AND (:actor::text IS NULL OR actor = :actor)
    AND (:action::text IS NULL OR action = :action)
    AND (:object::text IS NULL OR :object = ANY (objects))
    AND (:since::timestamptz IS NULL OR at >= :since)
    AND (:until::timestamptz IS NULL OR at < :until)
ORDER BY id DESC
LIMIT :limit;

-- name: tenants_with_old_audit
-- Active tenants with entries that are older than :kept.
SELECT tenant_id FROM tenants_with_old_audit(:retention);

-- name: forget_audit
-- Delete the oldest entries that are older than :kept, :limit at most. Returns their number.
SELECT forget_audit(:retention, :limit);
