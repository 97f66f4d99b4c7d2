-- Accounts of an address that nobody has proven, and what a reset of a password ends.
--
-- Whoever opens an invitation that was sent by mail reads the mail of its address. A link that was shown to whoever invited
-- proves nothing: the account that is made by it is of the inviting tenant alone (provider_tenant_id), as people are whom
-- an identity provider brought, but has a password (unproven). It is in the cell of that tenant. So several tenants may have an account
-- of one address each, and none of them takes the address.

ALTER TABLE people ADD COLUMN unproven boolean NOT NULL DEFAULT false;
-- squawk-ignore constraint-missing-not-valid -- the column is new: it is false everywhere
ALTER TABLE people ADD CONSTRAINT people_unproven_are_of_a_tenant CHECK (provider_tenant_id IS NOT NULL OR NOT unproven);
-- squawk-ignore ban-drop-constraint -- as before, but for these, by the constraint below
ALTER TABLE people DROP CONSTRAINT people_of_providers_have_no_password;
-- squawk-ignore constraint-missing-not-valid -- what held under the former constraint holds under this
ALTER TABLE people ADD CONSTRAINT people_of_providers_have_no_password
    CHECK (provider_tenant_id IS NULL OR password_hash IS NULL OR unproven);
CREATE UNIQUE INDEX people_unproven ON people (email, provider_tenant_id) WHERE unproven;
GRANT SELECT (unproven) ON people TO recollect_app;

-- A session of such an account is confined to its tenant, and no provider began it. Without a provider, no tenant confines
-- anything but that.
-- squawk-ignore ban-drop-constraint -- made anew at once
ALTER TABLE sessions DROP CONSTRAINT sessions_provider;
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid -- a session that ended is deleted in 30 days
ALTER TABLE sessions ADD CONSTRAINT sessions_provider FOREIGN KEY (confined_to, provider_id)
    REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE;
-- squawk-ignore constraint-missing-not-valid -- as above
ALTER TABLE sessions ADD CONSTRAINT sessions_of_providers_are_confined
    CHECK (provider_id IS NULL OR confined_to IS NOT NULL);

-- The accounts of an address that are of one tenant each: who signs in, and what the password is compared with. At most `most`,
-- oldest first, but that of first_tenant (a slug) or first_person before all.
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

-- As before, and whether a provider began it. A session of a person of one tenant is confined to it, whatever it says.
-- squawk-ignore ban-drop-function -- made anew at once; who asks for its old columns finds them
DROP FUNCTION find_session(bytea);
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

-- As before, and the one tenant of its person, if they are of one; a passkey that a move left is of nobody.
-- squawk-ignore ban-drop-function -- made anew at once; who asks for its old columns finds them
DROP FUNCTION find_passkey(bytea);
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

-- As before, and the one tenant of its person, if they are of one.
-- squawk-ignore ban-drop-function -- made anew at once; who asks for its old columns finds them
DROP FUNCTION find_password_reset(bytea);
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

-- As before, and when it was sent by mail: whoever opens it then reads the mail of its address.
-- squawk-ignore ban-drop-function -- made anew at once; who asks for its old columns finds them
DROP FUNCTION find_invitation(bytea);
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

-- End every way by which the person who has signed in could sign in so far, in this cell, other than the password: passkeys,
-- what they are at identity providers, and sessions. Raises RC003 where one of these tenants is between two cells.
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

-- The person who has signed in has proven that the address of their account is theirs: it is of no single tenant any more.
-- `proven`; `taken` where the address has another such account; `unknown` where the account is in another cell.
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

REVOKE ALL ON FUNCTION find_tenant_accounts(text, text, uuid, bigint), find_session(bytea), find_passkey(bytea),
    find_password_reset(bytea), find_invitation(bytea), end_own_sign_ins(), prove_own_address(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_tenant_accounts(text, text, uuid, bigint), find_session(bytea), find_passkey(bytea),
    find_password_reset(bytea), find_invitation(bytea), end_own_sign_ins(), prove_own_address(boolean) TO recollect_app;
