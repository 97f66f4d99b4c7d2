-- name: find_api_key
-- The key with this keyed hash, and its tenant; asked before a tenant is known.
SELECT tenant_id, tenant, tenant_status, id, kind, scopes, graph_ids, default_graph, expires_at, revoked_at,
    last_used_at, toolsets
FROM find_api_key($1);

-- name: insert_api_key
-- A new key.
INSERT INTO api_keys (tenant_id, id, name, kind, hash, hint, scopes, graph_ids, default_graph_id, created_by, expires_at,
    toolsets)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
RETURNING id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets;

-- name: list_api_keys
-- Keys after an id, oldest first; at most $3.
SELECT id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets
FROM api_keys
WHERE tenant_id = $1 AND ($2::uuid IS NULL OR id > $2)
ORDER BY id
LIMIT $3;

-- name: revoke_api_key
-- Make a key void; one that is void keeps its first time.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE tenant_id = $1 AND id = $2
RETURNING id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets;

-- name: touch_api_keys
-- Note when keys were used, where that is $4 later than what is known. A key that another gateway is noting is left to it:
-- nobody waits.
WITH used AS (
    SELECT k.id, n.at FROM api_keys k
    JOIN unnest($2::uuid[], $3::timestamptz[]) AS n (id, at) ON n.id = k.id
    WHERE k.tenant_id = $1 AND (k.last_used_at IS NULL OR k.last_used_at < n.at - $4::interval)
    ORDER BY k.id
    FOR UPDATE OF k SKIP LOCKED
)
UPDATE api_keys k SET last_used_at = u.at FROM used u WHERE k.tenant_id = $1 AND k.id = u.id;

-- name: is_default_graph
-- Whether a key that still holds has this graph as its default.
SELECT EXISTS (
    SELECT 1 FROM api_keys
    WHERE tenant_id = $1 AND default_graph_id = $2 AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > statement_timestamp())
);
