-- fragment: key
-- A key as it is listed: ApiKey.
id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at, revoked_at,
    last_used_at, toolsets, requests_per_minute;

-- name: find_api_key
-- The key with this keyed hash, and its tenant; asked before a tenant is known. The column read_at is the moment by the
-- clock that set its times: gateways compare them with it, and not with clocks of their own.
SELECT tenant_id, tenant, tenant_status, id, kind, scopes, graph_ids, default_graph, expires_at, revoked_at,
    last_used_at, toolsets, plan, requests_per_minute, key_requests_per_minute, concurrent_calls,
    clock_timestamp() AS read_at
FROM find_api_key(:key_hash);

-- name: insert_api_key
-- A new key.
INSERT INTO api_keys (tenant_id, id, name, kind, hash, hint, scopes, graph_ids, default_graph_id, created_by, expires_at,
    toolsets, requests_per_minute, hashed_with)
VALUES (:tenant_id, :id, :name, :kind, :key_hash, :hint, :scopes, :graph_ids, :default_graph_id, :subject, :expires_at,
    :toolsets, :requests_per_minute, :hashed_with)
RETURNING -- include: key
;

-- name: lock_keys
-- One transaction of the tenant at a time counts its keys and makes one.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.api_keys ' || :tenant_id::uuid::text, 0));

-- name: count_keys
-- The number of keys of the tenant, void ones included, counted up to :most.
SELECT count(*) FROM (SELECT FROM api_keys WHERE tenant_id = :tenant_id LIMIT :most::bigint) AS k;

-- name: forget_void_key
-- Delete the key that has been void for the longest time; whether there was one.
SELECT forget_void_key();

-- name: list_api_keys
-- Keys after an id, oldest first; at most :limit.
SELECT -- include: key
FROM api_keys
WHERE tenant_id = :tenant_id AND (:after::uuid IS NULL OR id > :after)
ORDER BY id
LIMIT :limit;

-- name: find_key_by_id
-- One key.
SELECT -- include: key
FROM api_keys
WHERE tenant_id = :tenant_id AND id = :key_id;

-- name: lock_api_key
-- One key, which nobody changes until this transaction ends.
SELECT -- include: key
FROM api_keys
WHERE tenant_id = :tenant_id AND id = :key_id
FOR UPDATE;

-- name: is_void
-- Whether a key of the tenant was revoked, at whatever time, or has expired: the clock may have been set back since.
SELECT revoked_at IS NOT NULL OR coalesce(expires_at <= clock_timestamp(), false) FROM api_keys
WHERE tenant_id = :tenant_id AND id = :key_id;

-- name: expire_api_key
-- Let a key end after :overlap, unless it ends earlier.
UPDATE api_keys SET expires_at = least(expires_at, clock_timestamp() + :overlap::interval)
WHERE tenant_id = :tenant_id AND id = :key_id;

-- name: revoke_api_key
-- Make a key void; one that is void keeps its first time.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE tenant_id = :tenant_id AND id = :key_id
RETURNING -- include: key
;

-- name: rehash_api_key
-- Store a key's hash under another secret, where that is not done yet.
UPDATE api_keys SET hash = :key_hash, hashed_with = :hashed_with
WHERE tenant_id = :tenant_id AND id = :key_id AND (hash <> :key_hash OR hashed_with IS DISTINCT FROM :hashed_with);

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
    WHERE tenant_id = :tenant_id AND default_graph_id = :graph_id AND revoked_at IS NULL AND is_current(expires_at)
);

-- name: find_subject_state
-- Whether the tenant is active, and whether a key of it (:key_id) holds, a person (:person_id) is its member, or a grant
-- (:grant_id) was not revoked and is a member's, or an issuer (:issuer_id) is trusted.
SELECT tenant.status = 'active' AND NOT tenant.read_only AS is_active, EXISTS (
    SELECT 1 FROM api_keys
    WHERE tenant_id = :tenant_id AND id = :key_id AND revoked_at IS NULL AND is_current(expires_at)
) OR EXISTS (
    SELECT 1 FROM members WHERE tenant_id = :tenant_id AND person_id = :person_id
) OR EXISTS (
    SELECT 1 FROM oauth_grants oauth_grant
    JOIN members member ON member.tenant_id = :tenant_id AND member.person_id = oauth_grant.person_id
    WHERE oauth_grant.tenant_id = :tenant_id AND oauth_grant.id = :grant_id AND oauth_grant.revoked_at IS NULL
) OR EXISTS (
    SELECT 1 FROM trusted_issuers WHERE tenant_id = :tenant_id AND id = :issuer_id AND disabled_at IS NULL
) AS holds
FROM tenants tenant
WHERE tenant.id = :tenant_id;
