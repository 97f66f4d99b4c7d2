-- name: find_person
-- Who signs in with this address, and what the password is compared with; asked before anybody is known.
SELECT id, email, name, password_hash, password_changes, NULL::uuid AS confined_to, NULL::text AS tenant
FROM find_person(:email);

-- name: find_tenant_accounts
-- Accounts of this address that are of one tenant each, since nobody proved the address; asked before anybody is known.
-- That of :tenant, or of :person_id, comes first.
SELECT id, email, name, password_hash, password_changes, confined_to, tenant
FROM find_tenant_accounts(:email, :tenant, :person_id, :most);

-- name: insert_tenant_account
-- A new person of this tenant alone, by a password; nobody where the tenant has an account of this address.
INSERT INTO people (id, email, name, password_hash, provider_tenant_id, unproven)
VALUES (:person_id, :email, :name, :password_hash, :tenant_id, true)
ON CONFLICT (email, provider_tenant_id) WHERE unproven DO NOTHING
RETURNING id;

-- name: prove_address
-- Make the account of the person who has signed in one of no single tenant.
SELECT prove_own_address(:as_copy::boolean);

-- name: end_sign_ins
-- End the ways by which the person who has signed in could sign in so far, in this cell, other than by the password.
SELECT end_own_sign_ins();

-- name: insert_person
-- A new person, who has signed in as far as the database knows; nobody where the address is taken.
INSERT INTO people (id, email, name, password_hash)
VALUES (:person_id, :email, :name, :password_hash)
ON CONFLICT (email) WHERE provider_tenant_id IS NULL DO NOTHING
RETURNING id, email, name, created_at;

-- name: act_as_person
-- Until this transaction ends, the rows of this person may be written as well.
SELECT set_config('recollect.person_id', :person_id::uuid::text, true);

-- name: copy_person
-- Store the name and address of a person whose account is in another cell, unless they are stored.
INSERT INTO people (id, email, name) VALUES (:person_id, :email, :name) ON CONFLICT DO NOTHING;

-- name: lock_account_shared
-- Until this transaction, at home, ends, nobody deletes the account of this person; nobody where there is none.
SELECT id FROM people WHERE id = :person_id AND provider_tenant_id IS NULL FOR KEY SHARE;

-- name: lock_account
-- Until this transaction, at home, ends, this person becomes no member, and begins no session; nobody where there is none.
SELECT email, name FROM people WHERE id = :person_id AND provider_tenant_id IS NULL FOR UPDATE;

-- name: delete_account
-- Delete the person who has signed in, with what is theirs alone and all invitations of this cell to their address.
SELECT delete_account();

-- name: lock_password
-- Until this transaction ends, this person takes no other password; nobody where they did after so many changes.
SELECT id FROM people WHERE id = :person_id AND password_changes = :password_changes FOR NO KEY UPDATE;

-- name: set_password
-- Another password.
UPDATE people SET password_hash = :password_hash WHERE id = :person_id;

-- name: insert_session
-- A sign-in.
INSERT INTO sessions (id, person_id, hash, expires_at, user_agent, address, confined_to, provider_id, password_changes)
VALUES (:id, :person_id, :hash, clock_timestamp() + :lifetime::interval, :user_agent, :address, :confined_to, :provider_id,
    :password_changes)
RETURNING expires_at;

-- name: forget_sessions
-- Of a person's sessions, those that ended longer ago than :retention, and those beyond :most: ended ones before valid ones, the
-- least recently used first. At most :limit.
DELETE FROM sessions WHERE id = ANY (ARRAY(
    SELECT s.id FROM sessions s
    WHERE s.person_id = :person_id AND (
        least(s.expires_at, s.revoked_at) < clock_timestamp() - :retention::interval OR s.id = ANY (ARRAY(
            SELECT o.id FROM sessions o WHERE o.person_id = :person_id
            ORDER BY least(o.expires_at, o.revoked_at) > clock_timestamp() DESC, o.last_used_at DESC, o.id DESC
            OFFSET :most
        ))
    )
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
));

-- name: count_password_changes
-- How often a person took another password, whose account is here; nobody where it is not.
SELECT password_changes FROM people WHERE id = :person_id AND provider_tenant_id IS NULL;

-- name: find_session
-- The session with this keyed hash, and its person; asked before anybody is known.
SELECT id, person_id, email, name, created_at, last_used_at, expires_at, revoked_at, confined_to,
    by_provider, clock_timestamp() AS read_at
FROM find_session(:hash);

-- name: touch_session
-- Note when a session was used.
UPDATE sessions SET last_used_at = :used_at WHERE id = :id AND person_id = :person_id AND last_used_at < :used_at;

-- name: list_sessions
-- Sessions of a person that hold, the last used first; of those that are confined to :within, where that is said, only.
-- At most :limit.
SELECT id, created_at, last_used_at, expires_at, revoked_at, user_agent, address
FROM sessions
WHERE person_id = :person_id AND revoked_at IS NULL AND expires_at > clock_timestamp()
    AND (:within::uuid IS NULL OR confined_to = :within)
ORDER BY last_used_at DESC, id
LIMIT :limit;

-- name: revoke_session
-- End a session that was not ended.
UPDATE sessions SET revoked_at = clock_timestamp()
WHERE person_id = :person_id AND id = :id AND revoked_at IS NULL AND (:within::uuid IS NULL OR confined_to = :within)
RETURNING id, created_at, last_used_at, expires_at, revoked_at, user_agent, address;

-- name: find_revoked_session
-- A session of a person that was ended. One that was not and could not be either is a copy that a move left here.
SELECT id, created_at, last_used_at, expires_at, revoked_at, user_agent, address
FROM sessions
WHERE person_id = :person_id AND id = :id AND revoked_at IS NOT NULL
    AND (:within::uuid IS NULL OR confined_to = :within);

-- name: revoke_other_sessions
-- End all of a person's sessions but one.
UPDATE sessions SET revoked_at = clock_timestamp()
WHERE person_id = :person_id AND id <> :except_session AND revoked_at IS NULL;

-- name: revoke_sessions
-- End all of a person's sessions.
UPDATE sessions SET revoked_at = clock_timestamp() WHERE person_id = :person_id AND revoked_at IS NULL;

-- name: insert_reset
-- A link by which a person takes another password.
INSERT INTO password_resets (id, person_id, hash, expires_at)
VALUES (:id, :person_id, :hash, clock_timestamp() + :lifetime::interval);

-- name: find_reset
-- The link with this keyed hash, and whose it is; asked before anybody is known.
SELECT id, person_id, email, name, expires_at, confined_to, clock_timestamp() AS read_at FROM find_password_reset(:hash);

-- name: use_reset
-- Use a link up; nothing where it holds no more, also where another has just used it.
DELETE FROM password_resets WHERE person_id = :person_id AND id = :id AND expires_at > clock_timestamp() RETURNING id;

-- name: forget_resets
-- Of a person's links, those that ended, and all but the :max_stored newest.
DELETE FROM password_resets
WHERE person_id = :person_id AND (expires_at <= clock_timestamp() OR id IN (
    SELECT r.id FROM password_resets r WHERE r.person_id = :person_id ORDER BY r.created_at DESC, r.id DESC OFFSET :max_stored
));

-- name: list_memberships
-- The tenants of which the person who has signed in is a member, by slug.
SELECT tenant_id, tenant, tenant_name, tenant_status, role, plan, requests_per_minute, key_requests_per_minute,
    concurrent_calls
FROM list_memberships();
