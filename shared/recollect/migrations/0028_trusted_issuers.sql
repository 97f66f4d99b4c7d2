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

-- What a tenant trusts an issuer with, and the rates of its plan, for a token that says to be of both; nothing where it is
-- disabled. Whether the token is, and still holds, is for the caller to judge.
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
    JOIN tenants t ON t.id = i.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE t.slug = tenant_slug AND i.issuer = issuer_address AND i.disabled_at IS NULL
$$;

-- The addresses of the issuers that a tenant trusts, as the metadata of its resource tells them to clients.
CREATE FUNCTION list_trusted_issuers(tenant_slug text)
RETURNS TABLE (issuer text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.issuer FROM trusted_issuers i JOIN tenants t ON t.id = i.tenant_id
    WHERE t.slug = tenant_slug AND t.status = 'active' AND i.disabled_at IS NULL
    ORDER BY i.issuer
    LIMIT 20
$$;

REVOKE ALL ON FUNCTION find_trusted_issuer(text, text), list_trusted_issuers(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_trusted_issuer(text, text), list_trusted_issuers(text) TO recollect_app;
