-- name: find_cells
-- In which cell these tenants are, as far as the directory names them; asked at home, before a tenant is known.
SELECT tenant_id, slug, cell FROM find_cells(:tenants, :slugs);

-- name: is_arriving
-- Whether a credential with this keyed hash is of a tenant that is arriving in this cell.
SELECT is_arriving(:hash);
