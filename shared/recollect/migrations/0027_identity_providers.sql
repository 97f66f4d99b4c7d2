-- Identity providers of tenants (OpenID Connect), whom they vouch for, and sign-ins that are under way.
--
-- A provider speaks for its own tenant and for no other. Whom it brings is a person of that tenant alone, or one with an
-- account of their own who connected it; a session that it began is good for that tenant only.

-- client_secret is encrypted under a key derived from RECOLLECT_KEY_SECRET. The issuer of a provider never changes: what
-- it says of a subject is about the same one for good.
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

-- Who somebody is at a provider: a subject of its issuer, and never an address.
CREATE TABLE provider_identities (
    tenant_id uuid NOT NULL,
    provider_id uuid NOT NULL,
    subject text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    person_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, provider_id, subject),
    UNIQUE (tenant_id, provider_id, person_id),
    FOREIGN KEY (tenant_id, provider_id) REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, person_id) REFERENCES members (tenant_id, person_id) ON DELETE CASCADE
);
CREATE INDEX provider_identities_person ON provider_identities (tenant_id, person_id);

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

DO $$
DECLARE tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['identity_providers', 'provider_identities', 'provider_sign_ins']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant_isolation ON %I USING (tenant_id = (SELECT nullif(current_setting('
            '''recollect.tenant_id'', true), '''')::uuid))', tenant_table);
    END LOOP;
END $$;
GRANT SELECT, INSERT, DELETE ON identity_providers, provider_identities, provider_sign_ins TO recollect_app;
GRANT UPDATE (name, client_id, client_secret, algorithm, disabled_at) ON identity_providers TO recollect_app;
GRANT UPDATE (last_used_at) ON provider_identities TO recollect_app;

-- A person whom a provider brought is of its tenant (provider_tenant_id) and has no account of their own: no password, and
-- an address that says nothing outside of it. So nobody's address is taken by what another tenant's provider says.
ALTER TABLE people ADD COLUMN provider_tenant_id uuid;
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid -- the column is new: there is nothing to scan
ALTER TABLE people ADD CONSTRAINT people_provider_tenant FOREIGN KEY (provider_tenant_id) REFERENCES tenants (id)
    ON DELETE CASCADE;
-- squawk-ignore constraint-missing-not-valid -- the column is new: it is null everywhere
ALTER TABLE people ADD CONSTRAINT people_of_providers_have_no_password
    CHECK (provider_tenant_id IS NULL OR password_hash IS NULL);
CREATE UNIQUE INDEX people_email ON people (email) WHERE provider_tenant_id IS NULL;
-- squawk-ignore ban-drop-constraint -- the index above takes its place
ALTER TABLE people DROP CONSTRAINT people_email_key;
CREATE INDEX people_of_providers ON people (provider_tenant_id) WHERE provider_tenant_id IS NOT NULL;
CREATE POLICY of_the_own_tenants_provider ON people AS RESTRICTIVE FOR INSERT WITH CHECK (
    provider_tenant_id IS NULL
    OR provider_tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)
);
GRANT SELECT (provider_tenant_id) ON people TO recollect_app;

-- A session that a provider began is confined to its tenant, and ends with the provider.
ALTER TABLE sessions ADD COLUMN confined_to uuid;
ALTER TABLE sessions ADD COLUMN provider_id uuid;
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid -- the columns are new: nothing to scan
ALTER TABLE sessions ADD CONSTRAINT sessions_provider FOREIGN KEY (confined_to, provider_id)
    REFERENCES identity_providers (tenant_id, id) MATCH FULL ON DELETE CASCADE;
CREATE INDEX sessions_of_providers ON sessions (confined_to, provider_id) WHERE confined_to IS NOT NULL;
GRANT SELECT (confined_to) ON sessions TO recollect_app;

-- As before; people whom a provider brought sign in by it alone.
CREATE OR REPLACE FUNCTION find_person(person_email text)
RETURNS TABLE (id uuid, email text, name text, password_hash text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash FROM people p
    WHERE p.email = person_email AND p.provider_tenant_id IS NULL
$$;

-- As before, with the tenant to which a session is confined; while its provider is disabled, it counts as ended.
-- squawk-ignore ban-drop-function -- made anew at once; who asks for its old columns finds them
DROP FUNCTION find_session(bytea);
CREATE FUNCTION find_session(secret_hash bytea)
RETURNS TABLE (
    id uuid, person_id uuid, email text, name text, created_at timestamptz, last_used_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz, confined_to uuid
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.id, s.person_id, p.email, p.name, s.created_at, s.last_used_at, s.expires_at,
        coalesce(s.revoked_at, i.disabled_at), s.confined_to
    FROM sessions s
    JOIN people p ON p.id = s.person_id
    LEFT JOIN identity_providers i ON i.tenant_id = s.confined_to AND i.id = s.provider_id
    WHERE s.hash = secret_hash
$$;

-- The providers by which people sign in to these tenants, as a page offers them: nobody has signed in yet.
CREATE FUNCTION find_identity_providers(tenant_slugs text[])
RETURNS TABLE (tenant_id uuid, tenant text, id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, i.id, i.name
    FROM identity_providers i JOIN tenants t ON t.id = i.tenant_id
    WHERE t.slug = ANY (tenant_slugs) AND t.status = 'active' AND i.disabled_at IS NULL
    ORDER BY t.slug, i.name, i.id
    LIMIT 100
$$;

-- The tenant of the sign-in under way whose state has this keyed hash: what else it says is read as that tenant.
CREATE FUNCTION find_provider_sign_in(state_hash bytea)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.tenant_id FROM provider_sign_ins s JOIN tenants t ON t.id = s.tenant_id
    WHERE s.hash = state_hash AND t.status = 'active'
$$;

REVOKE ALL ON FUNCTION find_session(bytea), find_identity_providers(text[]), find_provider_sign_in(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_session(bytea), find_identity_providers(text[]), find_provider_sign_in(bytea)
    TO recollect_app;
