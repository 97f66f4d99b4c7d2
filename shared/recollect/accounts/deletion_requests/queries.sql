-- name: find_request
-- The request for the deletion of the tenant, if there is one.
SELECT requested_by, requested_at, due_at FROM deletion_requests WHERE tenant_id = :tenant_id;

-- name: insert_request
-- Store that a person asked for the deletion of the tenant; returns nothing if it was requested before.
INSERT INTO deletion_requests AS r (tenant_id, requested_by) VALUES (:tenant_id, :requested_by)
ON CONFLICT (tenant_id) DO NOTHING
RETURNING r.requested_by, r.requested_at, r.due_at;

-- name: delete_request
-- Take the request for the deletion of the tenant back; returns it.
DELETE FROM deletion_requests WHERE tenant_id = :tenant_id RETURNING requested_by, requested_at, due_at;

-- name: list_notified
-- The addresses of owners and admins of the tenant, owners first; at most :limit.
SELECT p.email
FROM members m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = :tenant_id AND m.role IN ('owner', 'admin')
ORDER BY m.role = 'admin', m.person_id
LIMIT :limit;

-- name: tenants_with_due_deletion
-- Tenants whose owners asked for their deletion a week ago.
SELECT tenant_id FROM tenants_with_due_deletion();

-- name: delete_requested_tenant
-- Delete a tenant whose owner asked for that a week ago; returns when it is erased. :entry: the id of its audit entry.
SELECT delete_requested_tenant(:tenant, :entry);
