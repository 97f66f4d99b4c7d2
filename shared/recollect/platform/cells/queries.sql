-- name: find_cells
-- In which cell these tenants are, as far as the directory names them; asked at home, before a tenant is known.
SELECT tenant_id, slug, cell FROM find_cells(:tenants, :slugs);

-- name: find_places
-- What this cell says of these tenants, or of those with a credential that has one of these keyed hashes.
SELECT place FROM find_places(:tenants, :slugs, :hashes);
