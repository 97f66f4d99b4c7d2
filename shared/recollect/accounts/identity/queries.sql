-- name: find_api_key
-- The key with this keyed hash, and its tenant; asked before a tenant is known.
SELECT tenant_id, tenant, tenant_status, id, kind, scopes, graph_ids, default_graph, expires_at, revoked_at,
    last_used_at, toolsets, plan, requests_per_minute, key_requests_per_minute, concurrent_calls
FROM find_api_key(:key_hash);

-- name: insert_api_key
-- A new key.
INSERT INTO api_keys (tenant_id, id, name, kind, hash, hint, scopes, graph_ids, default_graph_id, created_by, expires_at,
    toolsets)
VALUES (:tenant_id, :id, :name, :kind, :key_hash, :hint, :scopes, :graph_ids, :default_graph_id, :subject, :expires_at,
    :toolsets)
RETURNING id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets;

-- name: list_api_keys
-- Keys after an id, oldest first; at most :limit.
SELECT id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets
FROM api_keys
WHERE tenant_id = :tenant_id AND (:after::uuid IS NULL OR id > :after)
ORDER BY id
LIMIT :limit;

-- name: revoke_api_key
-- Make a key void; one that is void keeps its first time.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE tenant_id = :tenant_id AND id = :key_id
RETURNING id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets;

-- name: touch_api_keys
-- Note when keys were used, where that is :every later than what is known. A key that another gateway is noting is left to
-- it: nobody waits.
WITH used AS (
    SELECT k.id, n.at FROM api_keys k
    JOIN unnest(:key_ids::uuid[], :used_at::timestamptz[]) AS n (id, at) ON n.id = k.id
    WHERE k.tenant_id = :tenant_id AND (k.last_used_at IS NULL OR k.last_used_at < n.at - :every::interval)
    ORDER BY k.id
    FOR UPDATE OF k SKIP LOCKED
)
UPDATE api_keys k SET last_used_at = u.at FROM used u WHERE k.tenant_id = :tenant_id AND k.id = u.id;

-- name: is_default_graph
-- Whether a key that still holds has this graph as its default.
SELECT EXISTS (
    SELECT 1 FROM api_keys
    WHERE tenant_id = :tenant_id AND default_graph_id = :graph_id AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > statement_timestamp())
);
