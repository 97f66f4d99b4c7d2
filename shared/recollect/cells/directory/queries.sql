-- name: find_entry
-- The directory's entry of a tenant, by its slug or its id. is_new: the tenant is perhaps not created yet.
SELECT id, cell, since > clock_timestamp() - interval '1 minute' AS is_new FROM tenant_cells WHERE slug = :slug OR id = :id;

-- name: claim_slug
-- Give a slug to a new tenant, unless a tenant of the home cell or of the directory has it.
INSERT INTO tenant_cells (id, slug, cell)
SELECT :id, :slug, :cell WHERE NOT EXISTS (SELECT FROM tenants WHERE slug = :slug)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: release_slug
-- Remove the entry of a tenant that was not created, or is gone.
DELETE FROM tenant_cells WHERE id = :id;

-- name: list_slugs
-- The slugs of the tenants that the directory has in a cell.
SELECT slug FROM tenant_cells WHERE cell = :cell ORDER BY slug;

-- name: forget_cell
-- Remove the entries of all tenants of a cell; their slugs.
DELETE FROM tenant_cells WHERE cell = :cell RETURNING slug;

-- name: has_tenant
-- Whether a cell has a tenant's rows, whether or not it serves it.
SELECT EXISTS (SELECT FROM tenants WHERE id = :id);

-- name: measure_cell
-- The size of a cell: tenants that are served there, and bytes.
SELECT (SELECT count(*) FROM tenants WHERE place IN ('here', 'leaving')) AS tenants,
    pg_database_size(current_database()) AS bytes;

-- name: missing_migrations
-- Of the migrations :wanted, those that a cell lacks.
SELECT name FROM missing_migrations(:wanted);

-- name: server_version
-- The version of PostgreSQL, without the name of the distribution.
SELECT split_part(current_setting('server_version'), ' ', 1);
