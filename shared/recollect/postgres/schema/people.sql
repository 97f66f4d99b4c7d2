-- People: accounts, sessions, passkeys, password resets, memberships and invitations.

-- A person is of no tenant and may be a member of several. Row-level security shows a person's own rows to who has
-- signed in as that person (`recollect.person_id`), and a tenant's members to the tenant.
CREATE TABLE people (
    id uuid PRIMARY KEY,
    email text NOT NULL CHECK (email = lower(email)),
    name text NOT NULL,
    password_hash text, -- argon2id; none where the person signs in elsewhere
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- A person whom a provider brought is of its tenant (provider_tenant_id) and has no account of their own: no
    -- password, and an address that says nothing outside of it. So nobody's address is taken by what another tenant's
    -- provider says.
    provider_tenant_id uuid,
    -- When a person took another password, which ends the sessions that identity providers began in other cells. One
    -- of those may not be reached then, or be on its way to another cell: whoever moves a tenant ends what began
    -- before.
    password_changed_at timestamptz,
    -- Whether a session began before its person took another password is counted: the clocks of two servers may
    -- differ. Home counts the passwords of a person, and a session that an identity provider began says how many
    -- there had been.
    password_changes bigint NOT NULL DEFAULT 0,
    -- Whether nobody has proven the address. Whoever opens an invitation that was sent by mail reads the mail of its
    -- address. A link that was shown to whoever invited proves nothing: the account that is made by it is of the
    -- inviting tenant alone (provider_tenant_id), as people are whom an identity provider brought, but has a
    -- password. It is in the cell of that tenant. So several tenants may have an account of one address each, and
    -- none of them takes the address.
    unproven boolean NOT NULL DEFAULT false,
    CONSTRAINT people_provider_tenant FOREIGN KEY (provider_tenant_id) REFERENCES tenants (id)
        ON DELETE CASCADE,
    CONSTRAINT people_unproven_are_of_a_tenant CHECK (provider_tenant_id IS NOT NULL OR NOT unproven),
    CONSTRAINT people_of_providers_have_no_password
        CHECK (provider_tenant_id IS NULL OR password_hash IS NULL OR unproven)
);
CREATE UNIQUE INDEX people_email ON people (email) WHERE provider_tenant_id IS NULL;
CREATE INDEX people_of_providers ON people (provider_tenant_id) WHERE provider_tenant_id IS NOT NULL;
CREATE UNIQUE INDEX people_unproven ON people (email, provider_tenant_id) WHERE unproven;

ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_the_own_tenants_provider ON people AS RESTRICTIVE FOR INSERT WITH CHECK (
    provider_tenant_id IS NULL
    OR provider_tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)
);
CREATE POLICY oneself ON people
    USING (id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
-- Hashes of passwords are written and never read again: the functions below look up what was hashed.
GRANT INSERT ON people TO recollect_app;
GRANT SELECT (id, email, name, created_at, provider_tenant_id, password_changes, unproven) ON people TO recollect_app;
GRANT UPDATE (name, password_hash) ON people TO recollect_app;

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
    address text NOT NULL,
    -- A session that a provider began is confined to its tenant, and ends with the provider.
    confined_to uuid,
    provider_id uuid,
    -- Null: it began before this was counted, or where all is in one cell; or the person has no account at home.
    password_changes bigint,
    CONSTRAINT sessions_provider FOREIGN KEY (confined_to, provider_id)
        REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE,
    -- A session of an unproven account is confined to its tenant, and no provider began it. Without a provider, no
    -- tenant confines anything but that.
    CONSTRAINT sessions_of_providers_are_confined
        CHECK (provider_id IS NULL OR confined_to IS NOT NULL)
);
CREATE INDEX sessions_person ON sessions (person_id, id);
CREATE INDEX sessions_of_providers ON sessions (confined_to, provider_id) WHERE confined_to IS NOT NULL;

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON sessions
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
-- What is kept of a session, such as the address from which somebody signed in, goes some time after it has ended:
-- with a later sign-in of the same person, as whom alone it is seen. Sessions that a provider began end with the
-- identity by which they began.
GRANT INSERT, DELETE ON sessions TO recollect_app;
GRANT SELECT (id, person_id, created_at, last_used_at, expires_at, revoked_at, user_agent, address, confined_to,
    provider_id) ON sessions TO recollect_app;
GRANT UPDATE (last_used_at, revoked_at) ON sessions TO recollect_app;

-- Links by which people who forgot their password take another one. Only the hash of each is kept.
CREATE TABLE password_resets (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX password_resets_person ON password_resets (person_id, created_at);

ALTER TABLE password_resets ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON password_resets
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
GRANT INSERT, DELETE ON password_resets TO recollect_app;
GRANT SELECT (id, person_id, created_at, expires_at) ON password_resets TO recollect_app;

-- Passkeys, by which people sign in without a password, and the challenges that are signed with them.
CREATE TABLE passkeys (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    credential_id bytea NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key bytea NOT NULL CHECK (octet_length(public_key) BETWEEN 1 AND 4000),
    sign_count bigint NOT NULL CHECK (sign_count >= 0),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id, id);

ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON passkeys
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
GRANT INSERT, DELETE ON passkeys TO recollect_app;
GRANT SELECT (id, person_id, credential_id, sign_count, name, created_at, last_used_at) ON passkeys TO recollect_app;
GRANT UPDATE (sign_count, name, last_used_at) ON passkeys TO recollect_app;

-- What a browser is asked to sign, once. browser: the keyed hash of its cookie. person_id: who adds a passkey by it;
-- none where somebody signs in.
CREATE TABLE passkey_challenges (
    challenge bytea PRIMARY KEY CHECK (octet_length(challenge) BETWEEN 16 AND 64),
    browser bytea NOT NULL CHECK (octet_length(browser) = 32),
    person_id uuid REFERENCES people (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenges_browser ON passkey_challenges (browser, expires_at);
CREATE INDEX passkey_challenges_end ON passkey_challenges (expires_at);
CREATE INDEX passkey_challenges_person ON passkey_challenges (person_id) WHERE person_id IS NOT NULL;

ALTER TABLE passkey_challenges ENABLE ROW LEVEL SECURITY;

-- Who is a member of which tenant.
CREATE TABLE members (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    person_id uuid NOT NULL REFERENCES people (id),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, person_id)
);
CREATE INDEX members_person ON members (person_id, tenant_id);

CREATE POLICY members_of_the_tenant ON people FOR SELECT
    USING (EXISTS (
        SELECT 1 FROM members m
        WHERE m.person_id = people.id
            AND m.tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)
    ));

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

ALTER TABLE provider_identities ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON provider_identities
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON provider_identities TO recollect_app;
GRANT UPDATE (last_used_at) ON provider_identities TO recollect_app;

ALTER TABLE members ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON members FOR SELECT
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
CREATE POLICY tenant_isolation ON members
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON members TO recollect_app;
GRANT UPDATE (role) ON members TO recollect_app;

-- Invitations to join a tenant. Only the hash of each secret is kept.
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
    -- When an invitation was handed to the mail server, or was tried to: a tenant sends so many in a day.
    mailed_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX invitations_mailed ON invitations (tenant_id, mailed_at) WHERE mailed_at IS NOT NULL;
-- When a person's account is deleted, so are the invitations that were sent to their address.
CREATE INDEX invitations_email ON invitations (email);

ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON invitations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT ON invitations TO recollect_app;
GRANT INSERT ON invitations TO recollect_operator;
GRANT UPDATE (accepted_at, revoked_at, mailed_at) ON invitations TO recollect_app;
GRANT SELECT (tenant_id, id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at) ON invitations
    TO recollect_operator;
GRANT UPDATE (revoked_at) ON invitations TO recollect_operator;

-- Who signs in: the person of this address, with what the password is compared with. People whom a provider brought
-- sign in by it alone, and are not found here.
-- What is begun by a password is written only if the person has taken no other since it was compared: a sign-in says
-- by password_changes which one that was.
CREATE FUNCTION find_person(person_email text)
RETURNS TABLE (id uuid, email text, name text, password_hash text, password_changes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash, p.password_changes FROM people p
    WHERE p.email = person_email AND p.provider_tenant_id IS NULL
$$;

-- A session by the hash of its secret; whether it still holds is for the caller to judge. A session that a tenant's
-- provider began is in the cell of that tenant, and holds while the tenant is here.
CREATE FUNCTION find_session(secret_hash bytea)
RETURNS TABLE (
    id uuid, person_id uuid, email text, name text, created_at timestamptz, last_used_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz, confined_to uuid, by_provider boolean
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.id, s.person_id, p.email, p.name, s.created_at, s.last_used_at, s.expires_at,
        coalesce(s.revoked_at, i.disabled_at), coalesce(s.confined_to, p.provider_tenant_id), s.provider_id IS NOT NULL
    FROM sessions s
    JOIN people p ON p.id = s.person_id
    LEFT JOIN identity_providers i ON i.tenant_id = s.confined_to AND i.id = s.provider_id
    WHERE s.hash = secret_hash
        AND (s.confined_to IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = s.confined_to))
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
    JOIN tenants_here t ON t.id = m.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
    ORDER BY t.slug
$$;

-- An invitation by the hash of its secret, and its tenant; whether it still holds is for the caller to judge.
CREATE FUNCTION find_invitation(secret_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, tenant_status text, id uuid, email text, role text,
    expires_at timestamptz, accepted_at timestamptz, revoked_at timestamptz, mailed_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, t.name, t.status, i.id, i.email, i.role, i.expires_at, i.accepted_at, i.revoked_at,
        i.mailed_at
    FROM invitations i JOIN tenants_here t ON t.id = i.tenant_id
    WHERE i.hash = secret_hash
$$;

-- A link by the hash of its secret, and whose it is; whether it still holds is for the caller to judge.
CREATE FUNCTION find_password_reset(secret_hash bytea)
RETURNS TABLE (id uuid, person_id uuid, email text, name text, expires_at timestamptz, confined_to uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT r.id, r.person_id, p.email, p.name, r.expires_at, p.provider_tenant_id
    FROM password_resets r JOIN people p ON p.id = r.person_id
    WHERE r.hash = secret_hash AND (
        p.provider_tenant_id IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = p.provider_tenant_id)
    )
$$;

-- Keep a challenge, of the person who has signed in or of nobody. Those that ended go, and those of the browser
-- beyond its five newest.
CREATE FUNCTION keep_passkey_challenge(new_challenge bytea, of_browser bytea, lifetime interval)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM passkey_challenges c
    WHERE c.challenge IN (
        SELECT o.challenge FROM passkey_challenges o WHERE o.expires_at < clock_timestamp()
        ORDER BY o.expires_at LIMIT 100
        FOR UPDATE SKIP LOCKED
    ) OR c.challenge IN (
        SELECT o.challenge FROM passkey_challenges o WHERE o.browser = of_browser ORDER BY o.expires_at DESC OFFSET 4
    );
    INSERT INTO passkey_challenges (challenge, browser, person_id, expires_at)
    VALUES (
        new_challenge, of_browser, nullif(current_setting('recollect.person_id', true), '')::uuid,
        clock_timestamp() + least(lifetime, interval '10 minutes')
    )
$$;

-- Use a challenge up, whatever comes of it; whether it held, for this browser and the person who has signed in, or
-- nobody.
CREATE FUNCTION take_passkey_challenge(old_challenge bytea, of_browser bytea)
RETURNS TABLE (held boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM passkey_challenges c
    WHERE c.challenge = old_challenge AND c.browser = of_browser
        AND c.person_id IS NOT DISTINCT FROM nullif(current_setting('recollect.person_id', true), '')::uuid
    RETURNING c.expires_at > clock_timestamp()
$$;

-- A passkey by its credential's id, and whose it is: what a sign-in is verified with.
CREATE FUNCTION find_passkey(credential bytea)
RETURNS TABLE (id uuid, person_id uuid, public_key bytea, sign_count bigint, confined_to uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.person_id, k.public_key, k.sign_count, p.provider_tenant_id
    FROM passkeys k JOIN people p ON p.id = k.person_id
    WHERE k.credential_id = credential AND (
        p.provider_tenant_id IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = p.provider_tenant_id)
    )
$$;

-- What the person who has signed in is at providers, in all tenants of which they are a member. `enabled`: whether
-- they can sign in by it.
CREATE FUNCTION list_own_identities(most bigint)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, provider_id uuid, provider_name text, enabled boolean,
    last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, i.id, i.name, i.disabled_at IS NULL AND t.status = 'active', x.last_used_at
    FROM members m
    JOIN tenants_here t ON t.id = m.tenant_id
    JOIN provider_identities x ON x.tenant_id = m.tenant_id AND x.person_id = m.person_id
    JOIN identity_providers i ON i.tenant_id = x.tenant_id AND i.id = x.provider_id
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
    ORDER BY t.slug, i.name, i.id
    LIMIT most
$$;

-- A session that is confined to a tenant is written where the tenant is here, or where its hold is over. While it
-- leaves, that is refused, since a move copies sessions once; what is left of it, or has come, is passed over as
-- though it were not there.
CREATE FUNCTION write_sessions_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.confined_to::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.confined_to], '{}', '{}') f;
    IF said = 'here' OR (said = 'leaving' AND end_hold(NEW.confined_to)) THEN
        RETURN NEW;
    ELSIF said = 'leaving' OR TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    END IF;
    RETURN NULL;
END $$;

-- Note when a person took another password, and count it.
CREATE FUNCTION note_changed_password()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.password_changed_at := clock_timestamp();
    NEW.password_changes := OLD.password_changes + 1;
    RETURN NEW;
END $$;

-- Delete the person who has signed in, with their sessions, passkeys, challenges and links for another password, and
-- every invitation of this cell to their address; whether there is nobody, a member still, or somebody who is gone by
-- now. A copy of somebody whose account is in another cell goes alike. Raises RC003 where a tenant of which they are
-- a member, or which invited them, is between two cells: its rows are in both. The lock is the one of
-- require_writable.
CREATE FUNCTION delete_account()
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
    address text;
    tenant uuid;
BEGIN
    -- Whoever makes this person a member, or begins a session, waits for this, or this for them.
    SELECT p.email INTO address FROM people p WHERE p.id = me AND p.provider_tenant_id IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'nobody';
    ELSIF EXISTS (SELECT FROM members m JOIN tenants_here t ON t.id = m.tenant_id WHERE m.person_id = me) THEN
        RETURN 'member';
    END IF;
    FOR tenant IN
        SELECT m.tenant_id FROM members m WHERE m.person_id = me
        UNION SELECT i.tenant_id FROM invitations i WHERE i.email = address
        ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
        IF NOT end_hold(tenant) THEN
            RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
        END IF;
    END LOOP;
    DELETE FROM invitations i WHERE i.email = address;
    DELETE FROM people p WHERE p.id = me;
    RETURN 'gone';
END $$;

-- Whom a tenant's identity provider brought is a person of that tenant alone and has no account to delete: they go,
-- with their sessions, when they are a member no more, as who they are at the provider does. Whoever comes again is
-- somebody new.
CREATE FUNCTION forget_brought_person()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
BEGIN
    DELETE FROM people p WHERE p.id = OLD.person_id AND p.provider_tenant_id = OLD.tenant_id;
    RETURN NULL;
END $$;

-- The accounts of an address that are of one tenant each: who signs in, and what the password is compared with. At
-- most `most`, oldest first, but that of first_tenant (a slug) or first_person before all.
CREATE FUNCTION find_tenant_accounts(person_email text, first_tenant text, first_person uuid, most bigint)
RETURNS TABLE (
    id uuid, email text, name text, password_hash text, password_changes bigint, confined_to uuid, tenant text
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash, p.password_changes, t.id, t.slug
    FROM people p JOIN tenants_here t ON t.id = p.provider_tenant_id
    WHERE p.email = person_email AND p.unproven
    ORDER BY coalesce(t.slug = first_tenant, false) OR coalesce(p.id = first_person, false) DESC, p.created_at, p.id
    LIMIT most
$$;

-- End every way by which the person who has signed in could sign in so far, in this cell, other than the password:
-- passkeys, what they are at identity providers, and sessions. Raises RC003 where one of these tenants is between two
-- cells.
CREATE FUNCTION end_own_sign_ins()
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
    tenant uuid;
BEGIN
    FOR tenant IN
        SELECT m.tenant_id FROM members m
        JOIN tenants_here t ON t.id = m.tenant_id
        JOIN provider_identities x ON x.tenant_id = m.tenant_id AND x.person_id = m.person_id
        WHERE m.person_id = me
        GROUP BY m.tenant_id ORDER BY m.tenant_id
    LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
        IF NOT end_hold(tenant) THEN
            RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
        END IF;
        DELETE FROM provider_identities x WHERE x.tenant_id = tenant AND x.person_id = me;
    END LOOP;
    DELETE FROM passkeys k WHERE k.person_id = me;
    UPDATE sessions s SET revoked_at = clock_timestamp() WHERE s.person_id = me AND s.revoked_at IS NULL;
END $$;

-- The person who has signed in has proven that the address of their account is theirs: it is of no single tenant any
-- more. `proven`; `taken` where the address has another such account; `unknown` where the account is in another cell.
-- as_copy: this cell is not home, which has the password.
CREATE FUNCTION prove_own_address(as_copy boolean)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
BEGIN
    UPDATE people p
    SET provider_tenant_id = NULL, unproven = false,
        password_hash = CASE WHEN as_copy THEN NULL ELSE p.password_hash END
    WHERE p.id = me AND (p.provider_tenant_id IS NULL OR p.unproven);
    RETURN CASE WHEN FOUND THEN 'proven' ELSE 'unknown' END;
EXCEPTION WHEN unique_violation THEN
    RETURN 'taken';
END $$;

-- Delete the oldest invitation of the transaction's tenant that does not hold, of those that do not count among the
-- mails of a day; whether there was one.
CREATE FUNCTION forget_void_invitation()
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM invitations i WHERE i.tenant_id = tenant AND i.id = (
        SELECT o.id FROM invitations o
        WHERE o.tenant_id = tenant
            AND (o.accepted_at IS NOT NULL OR o.revoked_at IS NOT NULL OR o.expires_at <= clock_timestamp())
            AND (o.mailed_at IS NULL OR o.mailed_at <= clock_timestamp() - interval '24 hours')
        ORDER BY o.created_at, o.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    );
    RETURN FOUND;
END $$;

CREATE TRIGGER sessions_here BEFORE INSERT OR UPDATE ON sessions
    FOR EACH ROW WHEN (NEW.confined_to IS NOT NULL AND current_user = 'recollect_app')
    EXECUTE FUNCTION write_sessions_here();

CREATE TRIGGER changed_password BEFORE UPDATE OF password_hash ON people
    FOR EACH ROW WHEN (NEW.password_hash IS DISTINCT FROM OLD.password_hash) EXECUTE FUNCTION note_changed_password();

CREATE TRIGGER brought_people AFTER DELETE ON members FOR EACH ROW EXECUTE FUNCTION forget_brought_person();
