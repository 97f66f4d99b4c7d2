-- fragment: status
-- What the credentials of a tenant are good for: TenantStatus.
CASE WHEN erase_at IS NOT NULL THEN 'deleted' WHEN status = 'active' AND read_only THEN 'read_only' ELSE status END;

-- fragment: tenant
-- A tenant as operators and its own members see it: Tenant.
id, slug, name, -- include: status
    AS status, plan, created_at, retention_days, erase_at, time_zone,
    (SELECT request.due_at FROM deletion_requests request WHERE request.tenant_id = id) AS deletion_due_at;

-- name: insert_tenant
-- A new tenant with its default graph; no row if the slug is taken.
WITH tenant AS (
    INSERT INTO tenants (id, slug, name, plan) VALUES (:id, :slug, :name, :plan)
    ON CONFLICT (slug) DO NOTHING
    RETURNING *
), graph AS (
    INSERT INTO graphs (tenant_id, id, name, created_by) SELECT id, :graph_id, 'default', 'operator' FROM tenant
), head AS (
    INSERT INTO graph_heads (tenant_id, graph_id) SELECT id, :graph_id FROM tenant
), indexes AS (
    INSERT INTO graph_indexes (tenant_id, graph_id) SELECT id, :graph_id FROM tenant
)
SELECT -- include: tenant
FROM tenant;

-- name: find_tenant
-- The tenant of that slug that is here.
SELECT -- include: tenant
FROM tenants WHERE slug = :slug AND place IN ('here', 'leaving');

-- name: list_tenants
-- Tenants that are here, after a slug, by slug as its bytes, so that all cells have one order; at most :limit. Only those
-- with :search in their slug or name, of this :status, with this :plan, and whose deletion an owner :requested or not; a
-- null does not matter.
SELECT -- include: tenant
FROM tenants
WHERE slug COLLATE "C" > :after AND place IN ('here', 'leaving')
    AND (:search::text IS NULL OR position(lower(:search) IN lower(slug || ' ' || name)) > 0)
    AND (:status::text IS NULL OR :status = -- include: status
    )
    AND (:plan::text IS NULL OR plan = :plan)
    AND (:requested::boolean IS NULL OR :requested = EXISTS (SELECT FROM deletion_requests r WHERE r.tenant_id = id))
ORDER BY slug COLLATE "C"
LIMIT :limit;

-- name: own_tenant
-- The tenant of the caller.
SELECT -- include: tenant
FROM tenants WHERE id = :tenant_id;

-- name: lock_writes_shared
-- Take the shared lock that keeps the tenant's writes from being stopped until this transaction ends. Every transaction
-- that changes the tenant's row takes it first, as do those that stop writes, so that they never wait for each other.
SELECT lock_writes(:tenant_id, false);

-- name: lock_own_tenant
-- The tenant of the caller, locked until this transaction ends.
SELECT -- include: tenant
FROM tenants WHERE id = :tenant_id FOR NO KEY UPDATE;

-- name: update_own_tenant
-- Change the name, if :name is not null, the retention, if :sets_retention, and the time zone, if :sets_time_zone.
UPDATE tenants SET name = coalesce(:name, name),
    retention_days = CASE WHEN :sets_retention THEN :retention_days::double precision ELSE retention_days END,
    time_zone = CASE WHEN :sets_time_zone THEN :time_zone::text ELSE time_zone END
WHERE id = :tenant_id
RETURNING -- include: tenant
;

-- name: lock_tenant
-- The tenant of that slug that is here, locked until this transaction ends.
SELECT -- include: tenant
FROM tenants WHERE slug = :slug AND place IN ('here', 'leaving') FOR NO KEY UPDATE;

-- name: lock_writes
-- Wait for writes of the tenant of that slug that are about to commit, and block others until this transaction ends. It
-- is taken before the tenant is locked: writers and moves take both locks in this order.
SELECT lock_writes(id, true) FROM tenants WHERE slug = :slug AND place IN ('here', 'leaving');

-- name: set_tenant_status
-- Suspend a tenant, for writes or completely, or resume it.
UPDATE tenants SET status = :status, read_only = :read_only WHERE id = :tenant_id
RETURNING -- include: tenant
;

-- name: set_tenant_plan
-- Give a tenant another plan.
UPDATE tenants SET plan = :plan WHERE id = :tenant_id RETURNING -- include: tenant
;

-- name: forget_statistics
-- Analyse every table that holds text of people; returns the tables that could not be analysed.
SELECT forget_statistics(NULL) AS left_out;
