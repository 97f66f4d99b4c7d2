-- name: list_providers
-- All providers of the tenant, by name: there are few.
SELECT id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at
FROM identity_providers WHERE tenant_id = :tenant_id
ORDER BY name, id;

-- name: lock_providers
-- The providers of the tenant, which nobody adds to until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.identity_providers:' || :tenant_id::uuid, 0));

-- name: insert_provider
-- A new provider; nothing where the tenant has one of this issuer.
INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, created_by)
VALUES (:tenant_id, :id, :name, :issuer, :client_id, :client_secret, :algorithm, :subject)
ON CONFLICT (tenant_id, issuer) DO NOTHING
RETURNING id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at;

-- name: lock_provider
-- A provider, which nobody changes until this transaction ends.
SELECT id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at
FROM identity_providers WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE;

-- name: change_provider
-- What is given is different from now on; one that is disabled already keeps its first time.
UPDATE identity_providers SET
    name = coalesce(:name, name),
    client_id = coalesce(:client_id, client_id),
    client_secret = coalesce(:client_secret, client_secret),
    algorithm = coalesce(:algorithm, algorithm),
    disabled_at = CASE :enabled::boolean
        WHEN true THEN NULL
        WHEN false THEN coalesce(disabled_at, clock_timestamp())
        ELSE disabled_at
    END
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at;

-- name: delete_provider
-- One provider less, with the identities that it vouched for and the sessions that it began.
DELETE FROM identity_providers WHERE tenant_id = :tenant_id AND id = :id RETURNING id;

-- name: find_offered
-- The providers by which people sign in to these tenants; asked before anybody is known.
SELECT tenant_id, tenant, id, name FROM find_identity_providers(:slugs::text[]);

-- name: find_registration
-- What we are at a provider that is not disabled.
SELECT id, issuer, client_id, client_secret, algorithm
FROM identity_providers WHERE tenant_id = :tenant_id AND id = :id AND disabled_at IS NULL;

-- name: forget_sign_ins
-- Those that nobody came back from in time, and the oldest beyond :kept.
DELETE FROM provider_sign_ins
WHERE tenant_id = :tenant_id AND (expires_at <= clock_timestamp() OR id IN (
    SELECT s.id FROM provider_sign_ins s WHERE s.tenant_id = :tenant_id
    ORDER BY s.created_at DESC, s.id DESC OFFSET :kept
));

-- name: insert_sign_in
-- A browser is sent to a provider.
INSERT INTO provider_sign_ins (
    tenant_id, id, provider_id, hash, browser, invitation_id, person_id, place, expires_at
) VALUES (
    :tenant_id, :id, :provider_id, :hash, :browser, :invitation_id, :person_id, :place,
    clock_timestamp() + :lifetime::interval
);

-- name: find_sign_in
-- The tenant of the sign-in with this keyed hash; asked before a tenant is known.
SELECT tenant_id FROM find_provider_sign_in(:hash);

-- name: use_sign_in
-- Use a sign-in up; nothing where it is over, of another browser, or of another provider than the one that answers.
DELETE FROM provider_sign_ins
WHERE tenant_id = :tenant_id AND hash = :hash AND browser = :browser AND provider_id = :provider_id
    AND expires_at > clock_timestamp()
RETURNING place, invitation_id, person_id;

-- name: find_identity
-- Whose an identity is; noted as used.
UPDATE provider_identities SET last_used_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND provider_id = :provider_id AND subject = :subject
RETURNING person_id;

-- name: insert_identity
-- An identity is this member's; nothing where it is somebody's, or the member has another one at this provider.
INSERT INTO provider_identities (tenant_id, provider_id, subject, person_id)
VALUES (:tenant_id, :provider_id, :subject, :person_id)
ON CONFLICT DO NOTHING
RETURNING person_id;

-- name: act_as_person
-- Until this transaction ends, the rows of this person may be written as well.
SELECT set_config('recollect.person_id', :person_id::uuid::text, true);

-- name: insert_person
-- A person of this tenant, whom a provider brought.
INSERT INTO people (id, email, name, provider_tenant_id) VALUES (:person_id, :email, :name, :tenant_id);

-- name: list_own_identities
-- What the person who has signed in is at providers, in all their tenants.
SELECT tenant_id, tenant, tenant_name, provider_id, provider_name, enabled, last_used_at FROM list_own_identities(:most);

-- name: lock_person
-- Until this transaction ends, nobody else takes a way to sign in from this person.
SELECT id FROM people WHERE id = :person_id FOR NO KEY UPDATE;

-- name: lock_ways
-- Until this transaction, at home, ends, nobody else takes a way to sign in from this person, in whichever cell that is. Not
-- the row of lock_person: who holds this takes that one in another transaction.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.ways ' || :person_id::uuid::text, 0));

-- name: delete_identity
-- A member is nobody at a provider any more; the sessions that began by it end.
WITH gone AS (
    DELETE FROM provider_identities
    WHERE tenant_id = :tenant_id AND provider_id = :provider_id AND person_id = :person_id
    RETURNING person_id
), ended AS (
    UPDATE sessions s SET revoked_at = clock_timestamp() FROM gone g
    WHERE s.person_id = g.person_id AND s.confined_to = :tenant_id AND s.provider_id = :provider_id
        AND s.revoked_at IS NULL
)
SELECT person_id FROM gone;
