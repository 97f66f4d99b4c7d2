-- Domains of e-mail addresses that tenants claim: whom a tenant's identity provider brings with such an address may join.

-- secret: what the domain's DNS must say; it is no secret once it stands there. verified_at: since when it is this tenant's,
-- checked_at: when the DNS last said so. A domain is verified for one tenant at a time.
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

-- Whether a domain may be the tenant's that has just proven it, until this transaction ends: it is no other tenant's, or of
-- one that has not proven it for a week, whose it is no more. Only for a domain that the tenant claims.
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
    SELECT t.slug FROM email_domains d JOIN tenants t ON t.id = d.tenant_id
    WHERE d.domain = email_domain AND d.verified_at IS NOT NULL AND t.status = 'active'
$$;

REVOKE ALL ON FUNCTION release_email_domain(text), find_email_domain(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_email_domain(text), find_email_domain(text) TO recollect_app;
