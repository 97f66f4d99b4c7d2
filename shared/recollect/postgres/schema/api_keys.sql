-- API keys.

CREATE TABLE api_keys (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('agent', 'admin')),
    hash bytea NOT NULL UNIQUE,
    hint text NOT NULL,
    scopes text[] NOT NULL,
    graph_ids uuid[],
    default_graph_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- A key may be confined to some toolsets; null is all.
    toolsets text[],
    -- A key may have a lower limit than the plan gives to each.
    requests_per_minute bigint CHECK (requests_per_minute > 0),
    -- Of which secret the hash is (a fingerprint, which tells nothing of it); null where that was not noted. The
    -- secret is replaced while both hold: each key is hashed anew when it is used.
    hashed_with bytea,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, default_graph_id) REFERENCES graphs (tenant_id, id)
        ON DELETE SET NULL (default_graph_id)
);

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON api_keys
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
-- Gateway and worker delete no key. One that is rotated ends after an overlap: its end may be brought forward.
GRANT SELECT, INSERT ON api_keys TO recollect_app;
GRANT INSERT ON api_keys TO recollect_operator;
GRANT UPDATE (hash, expires_at, revoked_at, last_used_at, hashed_with) ON api_keys TO recollect_app;
GRANT SELECT (tenant_id, id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by,
    expires_at, revoked_at, last_used_at, toolsets, requests_per_minute) ON api_keys TO recollect_operator;

-- A key by its keyed hash, with its tenant; whether it still holds is for the caller to judge.
-- Every call asks it: so its statement is planned once a session, and by the key.
CREATE FUNCTION find_api_key(key_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, kind text, scopes text[], graph_ids uuid[],
    default_graph text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, toolsets text[],
    plan text, requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
    SELECT k.tenant_id, t.slug, t.status, k.id, k.kind, k.scopes, k.graph_ids, g.name, k.expires_at, k.revoked_at,
        k.last_used_at, k.toolsets, p.name, p.requests_per_minute,
        least(k.requests_per_minute, p.key_requests_per_minute), p.concurrent_calls
    FROM api_keys k
    JOIN tenants_here t ON t.id = k.tenant_id
    JOIN plans p ON p.name = t.plan
    LEFT JOIN graphs g ON g.tenant_id = k.tenant_id AND g.id = k.default_graph_id
    WHERE k.hash = key_hash
$$;

-- Keys that hold no more go when a tenant has too many: for a new one, the oldest. The application may not delete
-- them otherwise.
-- Delete the key of the transaction's tenant that has been void for the longest time; whether there was one.
CREATE FUNCTION forget_void_key()
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM api_keys k WHERE k.tenant_id = tenant AND k.id = (
        SELECT o.id FROM api_keys o
        WHERE o.tenant_id = tenant AND least(o.revoked_at, o.expires_at) <= clock_timestamp()
        ORDER BY least(o.revoked_at, o.expires_at), o.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    );
    RETURN FOUND;
END $$;
