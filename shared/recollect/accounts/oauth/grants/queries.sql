-- name: find_access_token
-- The access token with this keyed hash, and its grant and tenant; read before a tenant is known.
SELECT tenant_id, tenant, tenant_status, grant_id, role, scopes, graph_ids, toolsets, default_graph, resource, expires_at,
    revoked_at, plan, requests_per_minute, key_requests_per_minute, concurrent_calls, clock_timestamp() AS read_at
FROM find_oauth_access_token(:hash);

-- name: find_tenant
-- The tenant of a code or a token; read before a tenant is known.
SELECT tenant_id FROM find_oauth_tenant(:hash) LIMIT 1;

-- name: insert_grant
-- Store a grant that a person gives.
INSERT INTO oauth_grants (tenant_id, id, person_id, client_id, client_name, scopes, graph_ids, toolsets, resource,
    created_by, expires_at)
VALUES (:tenant_id, :id, :person_id, :client_id, :client_name, :scopes, :graph_ids, :toolsets, :resource, :subject,
    clock_timestamp() + :lifetime::interval);

-- name: forget_grants
-- Delete grants of a person that ended more than 30 days ago, and those beyond the :remembered that ended last, with their
-- codes and tokens.
DELETE FROM oauth_grants
WHERE tenant_id = :tenant_id AND person_id = :person_id AND (
    least(expires_at, revoked_at) < clock_timestamp() - interval '30 days' OR id = ANY (ARRAY(
        SELECT id FROM oauth_grants
        WHERE tenant_id = :tenant_id AND person_id = :person_id AND least(expires_at, revoked_at) <= clock_timestamp()
        ORDER BY least(expires_at, revoked_at) DESC, id DESC
        OFFSET :remembered
    ))
);

-- name: revoke_oldest_grants
-- End the grants of a person beyond :kept, the least recently used first.
UPDATE oauth_grants SET revoked_at = clock_timestamp(), revoked_by = 'limit'
WHERE tenant_id = :tenant_id AND id IN (
    SELECT id FROM oauth_grants
    WHERE tenant_id = :tenant_id AND person_id = :person_id AND revoked_at IS NULL AND expires_at > clock_timestamp()
    ORDER BY coalesce(last_used_at, created_at) DESC, id DESC
    OFFSET :max_stored
)
RETURNING id;

-- name: insert_code
-- Store the code of a grant.
INSERT INTO oauth_codes (tenant_id, grant_id, hash, redirect_uri, code_challenge, nonce, expires_at)
VALUES (:tenant_id, :grant_id, :hash, :redirect_uri, :code_challenge, :nonce, clock_timestamp() + :lifetime::interval);

-- name: lock_code
-- A code that a client presents, locked so that it is used once; with its grant and the role of its person.
-- just_used: no longer ago than :repeats.
SELECT code.redirect_uri, code.code_challenge, code.nonce, code.used_at IS NOT NULL AS used,
    coalesce(code.used_at > clock_timestamp() - :repeats::interval, false) AS just_used,
    code.expires_at <= clock_timestamp() AS ended, oauth_grant.id AS grant_id, oauth_grant.person_id,
    oauth_grant.client_id, oauth_grant.resource, oauth_grant.scopes, member.role, oauth_grant.revoked_at IS NULL
    AND tenant.status = 'active' AS is_valid
FROM oauth_codes code
JOIN oauth_grants oauth_grant ON oauth_grant.tenant_id = code.tenant_id AND oauth_grant.id = code.grant_id
JOIN members member ON member.tenant_id = oauth_grant.tenant_id AND member.person_id = oauth_grant.person_id
JOIN tenants tenant ON tenant.id = code.tenant_id
WHERE code.tenant_id = :tenant_id AND code.hash = :hash
FOR UPDATE OF code;

-- name: use_code
-- Note that a code is used.
UPDATE oauth_codes SET used_at = clock_timestamp() WHERE tenant_id = :tenant_id AND grant_id = :grant_id;

-- name: lock_refresh_token
-- A refresh token that a client presents, locked so that its uses are counted; with its grant and the role of its
-- person. late: it was used, longer ago than parallel sessions explain.
SELECT token.id, token.generation, token.uses, token.expires_at <= clock_timestamp() AS ended,
    token.used_at IS NOT NULL AND token.used_at < clock_timestamp() - :grace::interval AS late,
    oauth_grant.id AS grant_id, oauth_grant.person_id, oauth_grant.client_id, oauth_grant.resource, oauth_grant.scopes,
    member.role, oauth_grant.revoked_at IS NULL AND tenant.status = 'active' AS is_valid
FROM oauth_refresh_tokens token
JOIN oauth_grants oauth_grant ON oauth_grant.tenant_id = token.tenant_id AND oauth_grant.id = token.grant_id
JOIN members member ON member.tenant_id = oauth_grant.tenant_id AND member.person_id = oauth_grant.person_id
JOIN tenants tenant ON tenant.id = token.tenant_id
WHERE token.tenant_id = :tenant_id AND token.hash = :hash
FOR UPDATE OF token;

-- name: use_refresh_token
-- Count a use of a refresh token.
UPDATE oauth_refresh_tokens SET used_at = coalesce(used_at, clock_timestamp()), uses = uses + 1
WHERE tenant_id = :tenant_id AND id = :id;

-- name: insert_access_token
-- Store an access token.
INSERT INTO oauth_access_tokens (tenant_id, id, grant_id, hash, scopes, expires_at)
VALUES (:tenant_id, :id, :grant_id, :hash, :scopes, clock_timestamp() + :lifetime::interval);

-- name: insert_refresh_token
-- Store a refresh token.
INSERT INTO oauth_refresh_tokens (tenant_id, id, grant_id, hash, generation, expires_at)
VALUES (:tenant_id, :id, :grant_id, :hash, :generation, clock_timestamp() + :lifetime::interval);

-- name: extend_grant
-- Note that a grant was used, and make it valid as long as its tokens.
UPDATE oauth_grants SET last_used_at = clock_timestamp(), expires_at = clock_timestamp() + :lifetime::interval
WHERE tenant_id = :tenant_id AND id = :grant_id;

-- name: forget_access_tokens
-- Delete access tokens of a grant that expired longer ago than :remembered.
DELETE FROM oauth_access_tokens
WHERE tenant_id = :tenant_id AND grant_id = :grant_id AND expires_at < clock_timestamp() - :remembered::interval;

-- name: forget_refresh_tokens
-- Delete refresh tokens of a grant that have expired, or were used longer ago than :remembered.
DELETE FROM oauth_refresh_tokens
WHERE tenant_id = :tenant_id AND grant_id = :grant_id
    AND (expires_at < clock_timestamp() OR used_at < clock_timestamp() - :remembered::interval);

-- name: end_oldest_refresh_tokens
-- Delete refresh tokens of a grant beyond the :unused newest that were not used, and the :remembered last used.
DELETE FROM oauth_refresh_tokens
WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT r.id FROM (
        SELECT o.id, o.used_at IS NULL AS is_unused,
            row_number() OVER (PARTITION BY o.used_at IS NULL ORDER BY coalesce(o.used_at, o.created_at) DESC, o.id DESC)
                AS position
        FROM oauth_refresh_tokens o WHERE o.tenant_id = :tenant_id AND o.grant_id = :grant_id
    ) AS r
    WHERE r.position > CASE WHEN r.is_unused THEN :unused::bigint ELSE :remembered::bigint END
));

-- name: end_oldest_access_tokens
-- Delete access tokens of a grant beyond the :remembered newest.
DELETE FROM oauth_access_tokens
WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT a.id FROM oauth_access_tokens a WHERE a.tenant_id = :tenant_id AND a.grant_id = :grant_id
    ORDER BY a.expires_at DESC, a.id DESC OFFSET :remembered
));

-- name: find_refresh_facts
-- The facts about a refresh token of a valid grant, for its client. A used one may still be revoked.
SELECT token.id, token.used_at IS NOT NULL AS used, oauth_grant.id AS grant_id, oauth_grant.person_id,
    oauth_grant.client_id, oauth_grant.scopes, member.role, oauth_grant.resource, token.created_at, token.expires_at
FROM oauth_refresh_tokens token
JOIN oauth_grants oauth_grant ON oauth_grant.tenant_id = token.tenant_id AND oauth_grant.id = token.grant_id
JOIN members member ON member.tenant_id = oauth_grant.tenant_id AND member.person_id = oauth_grant.person_id
JOIN tenants tenant ON tenant.id = token.tenant_id
WHERE token.tenant_id = :tenant_id AND token.hash = :hash AND token.expires_at > clock_timestamp()
    AND oauth_grant.revoked_at IS NULL AND tenant.status = 'active';

-- name: find_access_facts
-- The facts about a valid access token, for its client.
SELECT token.id, false AS used, oauth_grant.id AS grant_id, oauth_grant.person_id, oauth_grant.client_id, token.scopes,
    member.role, oauth_grant.resource, token.created_at, token.expires_at
FROM oauth_access_tokens token
JOIN oauth_grants oauth_grant ON oauth_grant.tenant_id = token.tenant_id AND oauth_grant.id = token.grant_id
JOIN members member ON member.tenant_id = oauth_grant.tenant_id AND member.person_id = oauth_grant.person_id
JOIN tenants tenant ON tenant.id = token.tenant_id
WHERE token.tenant_id = :tenant_id AND token.hash = :hash AND token.revoked_at IS NULL
    AND token.expires_at > clock_timestamp() AND oauth_grant.revoked_at IS NULL AND tenant.status = 'active';

-- name: revoke_access_token
-- Make an access token void.
UPDATE oauth_access_tokens SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE tenant_id = :tenant_id AND id = :id;

-- name: revoke_grant
-- Make a grant and all its tokens void; a void one keeps its first time. Returns whether it was valid.
WITH held AS (
    SELECT id, revoked_at IS NULL AS was_held FROM oauth_grants
    WHERE tenant_id = :tenant_id AND id = :grant_id
    FOR UPDATE
)
UPDATE oauth_grants g SET revoked_at = coalesce(g.revoked_at, clock_timestamp()),
    revoked_by = CASE WHEN h.was_held THEN :revoked_by ELSE g.revoked_by END
FROM held h
WHERE g.tenant_id = :tenant_id AND g.id = h.id
RETURNING h.was_held;

-- fragment: grant_fields
-- A grant as it is listed, with its person: Grant.
g.id, g.person_id, p.email AS person_email, p.name AS person_name, g.client_id, g.client_name, g.scopes, g.graph_ids,
    g.toolsets, g.resource, g.created_at, g.created_by, g.expires_at, g.last_used_at, g.revoked_at, g.revoked_by
FROM oauth_grants g JOIN people p ON p.id = g.person_id;

-- name: list_own_grants
-- The valid grants of the person who has signed in, in all tenants, the last used first; at most :most.
SELECT tenant_id, tenant, tenant_name, role, id, client_id, client_name, scopes, graphs, toolsets, created_at,
    last_used_at
FROM list_own_grants(:most);

-- name: get_grant
-- A grant of the tenant, and who gave it.
SELECT -- include: grant_fields
WHERE g.tenant_id = :tenant_id AND g.id = :grant_id;

-- name: list_grants
-- Grants after an id, oldest first, void ones too; of one person, if :person_id is not null. At most :limit.
SELECT -- include: grant_fields
WHERE g.tenant_id = :tenant_id AND (:after::uuid IS NULL OR g.id > :after)
    AND (:person_id::uuid IS NULL OR g.person_id = :person_id)
ORDER BY g.id
LIMIT :limit;
