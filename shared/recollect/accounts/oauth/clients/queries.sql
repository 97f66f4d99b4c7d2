-- name: find_client
-- The client of this id; asked before a tenant is known.
SELECT id, name, uri, redirect_uris, refreshes, fresh_until FROM find_oauth_client(:client_id);

-- name: keep_client
-- A client that registered, or what a client's document says now. No row where it registered before.
SELECT created_at
FROM keep_oauth_client(:client_id, :name, :uri, :redirect_uris::text[], :refreshes::boolean, :fresh_until::timestamptz);

-- name: touch_client
-- Note that a client was used: those that nobody uses are forgotten.
SELECT touch_oauth_client(:client_id);
