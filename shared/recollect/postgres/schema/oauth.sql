-- OAuth: clients, grants, codes, tokens, and the keys that sign them.
--
-- Grants, codes and tokens are a tenant's. Clients and signing keys are nobody's: they are reached by functions only.

-- Clients that registered, and documents about themselves that others publish under the address that is their id.
CREATE TABLE oauth_clients (
    id text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 2000),
    kind text NOT NULL CHECK (kind = CASE WHEN starts_with(id, 'https://') THEN 'document' ELSE 'registered' END),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    uri text CHECK (length(uri) <= 2000),
    redirect_uris text[] NOT NULL CHECK (cardinality(redirect_uris) BETWEEN 1 AND 10),
    refreshes boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    fresh_until timestamptz,
    last_used_at timestamptz
);
CREATE INDEX oauth_clients_unused ON oauth_clients (created_at) WHERE last_used_at IS NULL;

ALTER TABLE oauth_clients ENABLE ROW LEVEL SECURITY;

-- What a person lets a client do at one resource. Null graph_ids and toolsets are all. A grant ends with its last
-- token, and goes with the membership: who left and comes back is asked again.
CREATE TABLE oauth_grants (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    person_id uuid NOT NULL,
    client_id text NOT NULL,
    client_name text NOT NULL,
    scopes text[] NOT NULL,
    graph_ids uuid[],
    toolsets text[],
    resource text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, person_id) REFERENCES members (tenant_id, person_id) ON DELETE CASCADE
);
CREATE INDEX oauth_grants_person ON oauth_grants (tenant_id, person_id, id);

ALTER TABLE oauth_grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_grants
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_grants TO recollect_app;
GRANT UPDATE (expires_at, last_used_at, revoked_at, revoked_by) ON oauth_grants TO recollect_app;

-- The code of a grant, which its client changes for tokens once. Only hashes are kept of it and of tokens.
CREATE TABLE oauth_codes (
    tenant_id uuid NOT NULL,
    grant_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    redirect_uri text NOT NULL,
    code_challenge text NOT NULL,
    nonce text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    PRIMARY KEY (tenant_id, grant_id),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE oauth_codes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_codes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_codes TO recollect_app;
GRANT UPDATE (used_at) ON oauth_codes TO recollect_app;

CREATE TABLE oauth_access_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    grant_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_access_tokens_grant ON oauth_access_tokens (tenant_id, grant_id);

ALTER TABLE oauth_access_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_access_tokens
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_access_tokens TO recollect_app;
GRANT UPDATE (revoked_at) ON oauth_access_tokens TO recollect_app;

-- Each is used once, and within a moment of that again, by parallel sessions of its client. generation: how many came
-- before it.
CREATE TABLE oauth_refresh_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    grant_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    generation bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    uses bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_refresh_tokens_grant ON oauth_refresh_tokens (tenant_id, grant_id);

ALTER TABLE oauth_refresh_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_refresh_tokens
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_refresh_tokens TO recollect_app;
GRANT UPDATE (used_at, uses) ON oauth_refresh_tokens TO recollect_app;

-- fingerprint: which secret the private part is encrypted under.
CREATE TABLE signing_keys (
    id text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 100),
    fingerprint bytea NOT NULL,
    public_key jsonb NOT NULL,
    private_key bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE signing_keys ENABLE ROW LEVEL SECURITY;

-- An access token by its keyed hash, with its grant, its tenant and the person's role there, and the rates of the
-- tenant's plan; whether it still holds is for the caller to judge. None where the person is no member.
CREATE FUNCTION find_oauth_access_token(token_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, grant_id uuid, role text, scopes text[], graph_ids uuid[],
    toolsets text[], default_graph text, resource text, expires_at timestamptz, revoked_at timestamptz, plan text,
    requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT a.tenant_id, t.slug, t.status, g.id, m.role, a.scopes, g.graph_ids, g.toolsets,
        (SELECT x.name FROM graphs x WHERE x.tenant_id = g.tenant_id AND x.id = ANY (g.graph_ids)
            ORDER BY x.name <> 'default', x.name LIMIT 1),
        g.resource, a.expires_at, coalesce(a.revoked_at, g.revoked_at), p.name, p.requests_per_minute,
        p.key_requests_per_minute, p.concurrent_calls
    FROM oauth_access_tokens a
    JOIN oauth_grants g ON g.tenant_id = a.tenant_id AND g.id = a.grant_id
    JOIN members m ON m.tenant_id = g.tenant_id AND m.person_id = g.person_id
    JOIN tenants_here t ON t.id = a.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE a.hash = token_hash
$$;

-- The tenant, if it is here, of the code or token with this keyed hash: what it holds is read as that tenant.
CREATE FUNCTION find_oauth_tenant(secret_hash bytea)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM (
        SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = secret_hash
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = secret_hash
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = secret_hash
    ) AS held
    JOIN tenants_here t ON t.id = held.tenant_id
$$;

-- A client by its id.
CREATE FUNCTION find_oauth_client(client_id text)
RETURNS TABLE (
    id text, name text, uri text, redirect_uris text[], refreshes boolean, fresh_until timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT c.id, c.name, c.uri, c.redirect_uris, c.refreshes, c.fresh_until
    FROM oauth_clients c WHERE c.id = client_id
$$;

-- Keep a client that registered, or what a document says now. One that registered never changes. There are 10,000 at
-- most: those go that were never used for a day or were not used for half a year; beyond 9,000 that were used, those
-- that were used on one day only, then those that were not used for the longest time; and beyond 10,000 in all, the
-- oldest of those that were never used.
-- Whoever makes thousands of clients and uses them at once, for which one person who may sign in is enough, does not
-- have everybody else's forgotten: those that were used more than a day after they were made stay first, and those
-- that are about to be used have places of their own.
CREATE FUNCTION keep_oauth_client(
    client_id text, client_name text, client_uri text, uris text[], may_refresh boolean, fresh timestamptz
)
RETURNS TABLE (created_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM oauth_clients c
    WHERE (c.last_used_at IS NULL AND c.created_at < clock_timestamp() - interval '1 day')
        OR c.last_used_at < clock_timestamp() - interval '180 days'
        OR c.id IN (
            SELECT o.id FROM oauth_clients o WHERE o.last_used_at IS NOT NULL
            ORDER BY o.last_used_at > o.created_at + interval '1 day' DESC, o.last_used_at DESC
            OFFSET 9000
        );
    DELETE FROM oauth_clients c
    WHERE c.id IN (
        SELECT o.id FROM oauth_clients o WHERE o.last_used_at IS NULL
        ORDER BY o.created_at DESC
        OFFSET 9999 - (SELECT count(*) FROM oauth_clients u WHERE u.last_used_at IS NOT NULL)
    );
    INSERT INTO oauth_clients AS c (id, kind, name, uri, redirect_uris, refreshes, fresh_until)
    VALUES (
        client_id, CASE WHEN starts_with(client_id, 'https://') THEN 'document' ELSE 'registered' END, client_name,
        client_uri, uris, may_refresh, fresh
    )
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, uri = EXCLUDED.uri, redirect_uris = EXCLUDED.redirect_uris,
        refreshes = EXCLUDED.refreshes, fresh_until = EXCLUDED.fresh_until
    WHERE c.kind = 'document'
    RETURNING c.created_at
$$;

-- Note that a client was used, at most once a day.
CREATE FUNCTION touch_oauth_client(client_id text)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    UPDATE oauth_clients c SET last_used_at = clock_timestamp()
    WHERE c.id = client_id
        AND (c.last_used_at IS NULL OR c.last_used_at < clock_timestamp() - interval '1 day')
$$;

-- All signing keys, the newest first. Their private parts are encrypted.
CREATE FUNCTION list_signing_keys()
RETURNS TABLE (id text, fingerprint bytea, public_key jsonb, private_key bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.fingerprint, k.public_key, k.private_key, k.created_at FROM signing_keys k ORDER BY k.created_at DESC
$$;

-- Add a key, unless there is one of this secret that is younger than 30 days: of gateways that find none at the same
-- time, one adds it. Five are kept: what an older one signed has ended long ago.
CREATE FUNCTION add_signing_key(key_id text, secret_fingerprint bytea, public_part jsonb, private_part bytea)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('recollect.signing_keys', 0));
    INSERT INTO signing_keys (id, fingerprint, public_key, private_key)
    SELECT key_id, secret_fingerprint, public_part, private_part
    WHERE NOT EXISTS (
        SELECT 1 FROM signing_keys k
        WHERE k.fingerprint = secret_fingerprint AND k.created_at > clock_timestamp() - interval '30 days'
    );
    DELETE FROM signing_keys k
    WHERE k.id IN (SELECT o.id FROM signing_keys o ORDER BY o.created_at DESC OFFSET 5)
$$;

-- What the person who has signed in lets clients do, in all tenants: what holds, the last used first. As the tenants'
-- own lists have it; the names of graphs come with it, and null is all.
CREATE FUNCTION list_own_grants(most bigint)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, role text, id uuid, client_id text, client_name text, scopes text[],
    graphs text[], toolsets text[], created_at timestamptz, last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, m.role, g.id, g.client_id, g.client_name, g.scopes,
        CASE WHEN g.graph_ids IS NOT NULL THEN ARRAY(
            SELECT x.name FROM graphs x WHERE x.tenant_id = g.tenant_id AND x.id = ANY (g.graph_ids) ORDER BY x.name
        ) END,
        g.toolsets, g.created_at, g.last_used_at
    FROM members m
    JOIN tenants_here t ON t.id = m.tenant_id
    JOIN oauth_grants g ON g.tenant_id = m.tenant_id AND g.person_id = m.person_id
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
        AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
    ORDER BY coalesce(g.last_used_at, g.created_at) DESC, g.id DESC
    LIMIT most
$$;
