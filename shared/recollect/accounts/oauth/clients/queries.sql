-- name: find_client
-- The client with this id; read before a tenant is known.
SELECT id, name, uri, redirect_uris, refreshes, fresh_until FROM find_oauth_client(:client_id);

-- name: keep_client
-- Store a client that registers, or the present document of a client. No row if the id is that of a registered client.
SELECT created_at
FROM keep_oauth_client(:client_id, :name, :uri, :redirect_uris::text[], :refreshes::boolean, :fresh_until::timestamptz);

-- name: touch_client
-- Note that a client was used: unused ones are deleted.
SELECT touch_oauth_client(:client_id);
