-- name: find_cells
-- In which cell these tenants are, as far as the directory names them; asked at home, before a tenant is known.
SELECT tenant_id, slug, cell FROM find_cells(:tenants, :slugs);

-- name: find_tenant_states
-- What this cell says of these tenants, or of those with a credential that has one of these keyed hashes.
SELECT place FROM find_places(:tenants, :slugs, :hashes);

-- name: find_departures
-- Those of these tenants that departed from this cell, and should have arrived in another by now.
SELECT tenant_id, departed_to AS target, switch_secret AS secret FROM find_departures(:tenants, :slugs, :hashes);

-- name: end_switch
-- Serve here a tenant that departed from another cell, if the secret is right; whether it is served here.
SELECT end_switch(:moving, :secret) AS is_here;

-- name: follow_move
-- Enter the cell to which a tenant moves in the directory, at home.
SELECT follow_move(:moving, :target);

-- name: list_open_switches
-- Tenants whose move was about to switch, and is not in the directory yet; asked at home.
SELECT tenant_id, source FROM list_open_switches(:most);
