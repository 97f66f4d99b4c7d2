-- People, their sessions, their memberships in tenants, and invitations to join one.
--
-- A person is of no tenant and may be a member of several. Row-level security shows a person's own rows to who has
-- signed in as that person (`recollect.person_id`), and a tenant's members to the tenant.

CREATE TABLE people (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE CHECK (email = lower(email)),
    name text NOT NULL,
    password_hash text, -- argon2id; none where the person signs in elsewhere
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Each sign-in, until it ends or is ended. Only the hash of what the browser holds is kept.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    user_agent text NOT NULL,
    address text NOT NULL
);
CREATE INDEX sessions_person ON sessions (person_id, id);

CREATE TABLE members (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    person_id uuid NOT NULL REFERENCES people (id),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, person_id)
);
CREATE INDEX members_person ON members (person_id, tenant_id);

CREATE TABLE invitations (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    email text NOT NULL CHECK (email = lower(email)),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'reader')),
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz,
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);

ALTER TABLE people ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON people
    USING (id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
CREATE POLICY members_of_the_tenant ON people FOR SELECT
    USING (EXISTS (
        SELECT 1 FROM members m
        WHERE m.person_id = people.id
            AND m.tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)
    ));
CREATE POLICY oneself ON sessions
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
CREATE POLICY tenant_isolation ON members
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
CREATE POLICY oneself ON members FOR SELECT
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
CREATE POLICY tenant_isolation ON invitations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));

-- A person's hashes are written and never read again: what was hashed is looked up by the functions below.
GRANT SELECT (id, email, name, created_at), INSERT, UPDATE (name, password_hash) ON people TO recollect_app;
GRANT SELECT (id, person_id, created_at, last_used_at, expires_at, revoked_at, user_agent, address), INSERT,
    UPDATE (last_used_at, revoked_at) ON sessions TO recollect_app;
GRANT SELECT, INSERT, UPDATE (role), DELETE ON members TO recollect_app;
GRANT SELECT, INSERT, UPDATE (accepted_at, revoked_at) ON invitations TO recollect_app;

-- Who signs in: the person of this address, with what the password is compared with.
CREATE FUNCTION find_person(person_email text)
RETURNS TABLE (id uuid, email text, name text, password_hash text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash FROM people p WHERE p.email = person_email
$$;

-- A session by the hash of its secret; whether it still holds is for the caller to judge.
CREATE FUNCTION find_session(secret_hash bytea)
RETURNS TABLE (
    id uuid, person_id uuid, email text, name text, created_at timestamptz, last_used_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.id, s.person_id, p.email, p.name, s.created_at, s.last_used_at, s.expires_at, s.revoked_at
    FROM sessions s JOIN people p ON p.id = s.person_id
    WHERE s.hash = secret_hash
$$;

-- The tenants of which a person is a member, with the rates of their plans. Only of the person who has signed in.
CREATE FUNCTION list_memberships()
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, tenant_status text, role text, plan text,
    requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, t.status, m.role, p.name, p.requests_per_minute, p.key_requests_per_minute,
        p.concurrent_calls
    FROM members m
    JOIN tenants t ON t.id = m.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
    ORDER BY t.slug
$$;

-- An invitation by the hash of its secret, and its tenant; whether it still holds is for the caller to judge.
CREATE FUNCTION find_invitation(secret_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, tenant_status text, id uuid, email text, role text,
    expires_at timestamptz, accepted_at timestamptz, revoked_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, t.name, t.status, i.id, i.email, i.role, i.expires_at, i.accepted_at, i.revoked_at
    FROM invitations i JOIN tenants t ON t.id = i.tenant_id
    WHERE i.hash = secret_hash
$$;

REVOKE ALL ON FUNCTION find_person(text), find_session(bytea), list_memberships(), find_invitation(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_person(text), find_session(bytea), list_memberships(), find_invitation(bytea)
    TO recollect_app;
