-- fragment: tenant
-- A tenant as operators see it: Tenant.
id, slug, name,
    CASE WHEN erase_at IS NOT NULL THEN 'deleted' WHEN status = 'active' AND read_only THEN 'read_only' ELSE status END
    AS status, plan, created_at, retention_days, erase_at, time_zone,
    (SELECT request.due_at FROM deletion_requests request WHERE request.tenant_id = id) AS deletion_due_at;

-- name: is_moving
-- Whether another cell has, or may have, rows of a tenant, too.
SELECT moving FROM tenants WHERE id = :tenant_id;

-- name: insert_deletion
-- Store that a tenant is deleted, with its status before.
INSERT INTO tenant_deletions (id, deleted_by, status_before, read_only_before)
SELECT id, :deleted_by, status, read_only FROM tenants WHERE id = :tenant_id;

-- name: set_erase_at
-- Suspend a tenant completely until it is erased: after the grace, or earlier if that was set before.
UPDATE tenants SET status = 'suspended', erase_at = least(erase_at, statement_timestamp() + :grace::interval)
WHERE id = :tenant_id
RETURNING -- include: tenant
;

-- name: restore_tenant
-- Give a tenant its status back, if its grace is not over.
WITH undone AS (
    DELETE FROM tenant_deletions deletion USING tenants tenant
    WHERE deletion.id = :tenant_id AND tenant.id = deletion.id AND tenant.erase_at > statement_timestamp()
        AND deletion.begun_at IS NULL
    RETURNING deletion.status_before, deletion.read_only_before
)
UPDATE tenants SET status = undone.status_before, read_only = undone.read_only_before, erase_at = NULL
FROM undone WHERE id = :tenant_id
RETURNING -- include: tenant
;

-- name: withdraw_request
-- Take back that an owner asked for the deletion of a tenant; returns who did.
SELECT withdraw_deletion_request(:tenant_id);

-- name: tenants_to_erase
-- Tenants whose grace is over.
SELECT tenant_id FROM tenants_to_erase();

-- name: erase_tenant_step
-- Run one step of the erasure of a tenant, of :rows rows at most; returns its outcome.
SELECT erase_tenant_step(:tenant_id, :rows);

-- name: count_of_tenant
-- The number of a tenant's rows in each table, as JSON.
SELECT count_of_tenant(:tenant_id)::text;

-- name: list_receipts
-- Receipts before the number :before, newest first; at most :limit. :slug null: of all tenants.
SELECT id, number, erased_at, slug, content, sha256 FROM erasure_receipts
WHERE (:slug::text IS NULL OR slug = :slug) AND (:before::bigint IS NULL OR number < :before)
ORDER BY number DESC
LIMIT :limit;

-- name: find_receipt
-- One receipt.
SELECT id, number, erased_at, slug, content, sha256 FROM erasure_receipts WHERE id = :receipt_id;

-- name: find_receipt_of
-- The receipt of a tenant that was erased.
SELECT id, number, erased_at, slug, content, sha256 FROM erasure_receipts WHERE tenant = :tenant_id;
