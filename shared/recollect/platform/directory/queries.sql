-- name: find_entry
-- What the directory says of a tenant, by its slug or its id. is_new: it may be about to be made.
SELECT id, cell, since > clock_timestamp() - interval '1 minute' AS is_new FROM tenant_cells WHERE slug = :slug OR id = :id;

-- name: claim_slug
-- A slug is from now on that of this new tenant; not where a tenant at home has it, or one in the directory.
INSERT INTO tenant_cells (id, slug, cell)
SELECT :id, :slug, :cell WHERE NOT EXISTS (SELECT FROM tenants WHERE slug = :slug)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: release_slug
-- The directory names a tenant no more, which was not made.
DELETE FROM tenant_cells WHERE id = :id;

-- name: list_slugs
-- The slugs of the tenants that the directory has in a cell.
SELECT slug FROM tenant_cells WHERE cell = :cell ORDER BY slug;

-- name: forget_cell
-- The directory has no tenant in a cell any more; whose it had.
DELETE FROM tenant_cells WHERE cell = :cell RETURNING slug;

-- name: has_tenant
-- Whether a cell has a tenant, wherever it is served.
SELECT EXISTS (SELECT FROM tenants WHERE id = :id);

-- name: measure_cell
-- How much is in a cell: tenants that are served there, and bytes.
SELECT (SELECT count(*) FROM tenants WHERE place IN ('here', 'leaving')) AS tenants,
    pg_database_size(current_database()) AS bytes;

-- name: missing_migrations
-- Of the migrations :wanted, those that a cell lacks.
SELECT name FROM missing_migrations(:wanted);
