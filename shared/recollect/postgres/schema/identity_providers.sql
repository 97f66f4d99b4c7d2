-- Identity providers of tenants, sign-ins under way with them, trusted issuers of tokens, and e-mail domains.
--
-- A provider speaks for its own tenant and for no other. Whom it brings is a person of that tenant alone, or one with
-- an account of their own who connected it; a session that it began is good for that tenant only.

-- client_secret is encrypted under a key derived from RECOLLECT_KEY_SECRET. The issuer of a provider never changes:
-- what it says of a subject is about the same one for good.
CREATE TABLE identity_providers (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    issuer text NOT NULL CHECK (length(issuer) BETWEEN 1 AND 2000),
    client_id text NOT NULL CHECK (length(client_id) BETWEEN 1 AND 500),
    client_secret bytea NOT NULL,
    algorithm text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    disabled_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, issuer)
);

ALTER TABLE identity_providers ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON identity_providers
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON identity_providers TO recollect_app;
GRANT UPDATE (name, client_id, client_secret, algorithm, disabled_at) ON identity_providers TO recollect_app;

-- A browser that was sent to a provider. hash: of the state that comes back; browser: of the cookie that must come with
-- it. invitation_id and person_id: what it is for, where it is to join or to connect the provider.
CREATE TABLE provider_sign_ins (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    provider_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    browser bytea NOT NULL,
    invitation_id uuid,
    person_id uuid,
    place text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, provider_id) REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE provider_sign_ins ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON provider_sign_ins
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON provider_sign_ins TO recollect_app;

-- Issuers of access tokens that a tenant trusts, beside our own authorization server.
-- rules: what a token may do, by what its claim (`claim`) says: [{"value", "scopes", "graph_ids"}]. The issuer never
-- changes: what it says of a subject is about the same one for good.
CREATE TABLE trusted_issuers (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    issuer text NOT NULL CHECK (length(issuer) BETWEEN 1 AND 2000),
    algorithm text NOT NULL,
    claim text NOT NULL CHECK (length(claim) BETWEEN 1 AND 100),
    rules jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    disabled_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, issuer)
);

ALTER TABLE trusted_issuers ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON trusted_issuers
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON trusted_issuers TO recollect_app;
GRANT UPDATE (name, algorithm, claim, rules, disabled_at) ON trusted_issuers TO recollect_app;

-- Domains of e-mail addresses that tenants claim: whom a tenant's identity provider brings with such an address may
-- join.
-- secret: what the domain's DNS must say; it is no secret once it stands there. verified_at: since when it is this
-- tenant's, checked_at: when the DNS last said so. A domain is verified for one tenant at a time.
CREATE TABLE email_domains (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    domain text NOT NULL CHECK (domain = lower(domain) AND length(domain) BETWEEN 3 AND 253),
    secret text NOT NULL CHECK (length(secret) >= 32),
    role text NOT NULL CHECK (role IN ('member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    verified_at timestamptz,
    checked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, domain)
);
CREATE UNIQUE INDEX email_domains_verified ON email_domains (domain) WHERE verified_at IS NOT NULL;

ALTER TABLE email_domains ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON email_domains
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON email_domains TO recollect_app;
GRANT UPDATE (role, verified_at, checked_at) ON email_domains TO recollect_app;

-- The providers by which people sign in to these tenants, as a page offers them: nobody has signed in yet.
CREATE FUNCTION find_identity_providers(tenant_slugs text[])
RETURNS TABLE (tenant_id uuid, tenant text, id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, i.id, i.name
    FROM identity_providers i JOIN tenants_here t ON t.id = i.tenant_id
    WHERE t.slug = ANY (tenant_slugs) AND t.status = 'active' AND i.disabled_at IS NULL
    ORDER BY t.slug, i.name, i.id
    LIMIT 100
$$;

-- The tenant of the sign-in under way whose state has this keyed hash: what else it says is read as that tenant.
CREATE FUNCTION find_provider_sign_in(state_hash bytea)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.tenant_id FROM provider_sign_ins s JOIN tenants_here t ON t.id = s.tenant_id
    WHERE s.hash = state_hash AND t.status = 'active'
$$;

-- What a tenant trusts an issuer with, and the rates of its plan, for a token that says to be of both; nothing where
-- it is disabled. Whether the token is, and still holds, is for the caller to judge.
CREATE FUNCTION find_trusted_issuer(tenant_slug text, issuer_address text)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, issuer text, algorithm text, claim text, rules jsonb,
    plan text, requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, t.status, i.id, i.issuer, i.algorithm, i.claim, i.rules, p.name, p.requests_per_minute,
        p.key_requests_per_minute, p.concurrent_calls
    FROM trusted_issuers i
    JOIN tenants_here t ON t.id = i.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE t.slug = tenant_slug AND i.issuer = issuer_address AND i.disabled_at IS NULL
$$;

-- The addresses of the issuers that a tenant trusts, as the metadata of its resource tells them to clients.
CREATE FUNCTION list_trusted_issuers(tenant_slug text)
RETURNS TABLE (issuer text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.issuer FROM trusted_issuers i JOIN tenants_here t ON t.id = i.tenant_id
    WHERE t.slug = tenant_slug AND t.status = 'active' AND i.disabled_at IS NULL
    ORDER BY i.issuer
    LIMIT 20
$$;

-- Whether a domain may be the tenant's that has just proven it, until this transaction ends: it is no other tenant's,
-- or of one that has not proven it for a week, whose it is no more. Only for a domain that the tenant claims.
CREATE FUNCTION release_email_domain(proven_domain text)
RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('recollect.email_domain:' || proven_domain, 0));
    UPDATE email_domains d SET verified_at = NULL
    WHERE d.domain = proven_domain AND d.checked_at < clock_timestamp() - interval '7 days'
        AND d.tenant_id <> nullif(current_setting('recollect.tenant_id', true), '')::uuid
        AND EXISTS (
            SELECT 1 FROM email_domains o
            WHERE o.domain = proven_domain
                AND o.tenant_id = nullif(current_setting('recollect.tenant_id', true), '')::uuid
        );
    SELECT NOT EXISTS (
        SELECT 1 FROM email_domains d
        WHERE d.domain = proven_domain AND d.verified_at IS NOT NULL
            AND d.tenant_id IS DISTINCT FROM nullif(current_setting('recollect.tenant_id', true), '')::uuid
    )
$$;

-- The tenant whose a domain is, as the sign-in page asks for who types their address.
CREATE FUNCTION find_email_domain(email_domain text)
RETURNS TABLE (tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.slug FROM email_domains d JOIN tenants_here t ON t.id = d.tenant_id
    WHERE d.domain = email_domain AND d.verified_at IS NOT NULL AND t.status = 'active'
$$;
