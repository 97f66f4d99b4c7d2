-- name: insert_tenant
-- A new tenant with its default graph; no row if the slug is taken.
WITH tenant AS (
    INSERT INTO tenants (id, slug, name) VALUES ($1, $2, $3) ON CONFLICT (slug) DO NOTHING RETURNING *
), graph AS (
    INSERT INTO graphs (tenant_id, id, name, created_by) SELECT id, $4, 'default', 'operator' FROM tenant
    RETURNING tenant_id, id
), head AS (
    INSERT INTO graph_heads (tenant_id, graph_id) SELECT tenant_id, id FROM graph
), indexes AS (
    INSERT INTO graph_indexes (tenant_id, graph_id) SELECT tenant_id, id FROM graph
)
SELECT id, slug, name, status, created_at FROM tenant;

-- name: find_tenant
-- The tenant of that slug.
SELECT id, slug, name, status, created_at FROM tenants WHERE slug = $1;

-- name: list_tenants
-- Tenants after a slug, by slug; at most $2.
SELECT id, slug, name, status, created_at FROM tenants WHERE slug > $1 ORDER BY slug LIMIT $2;

-- name: set_tenant_status
-- Suspend or resume a tenant.
UPDATE tenants SET status = $2 WHERE slug = $1 RETURNING id, slug, name, status, created_at;
