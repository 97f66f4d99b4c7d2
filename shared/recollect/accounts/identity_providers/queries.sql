-- name: list_providers
-- All providers of the tenant, by name: there are few.
SELECT id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at
FROM identity_providers WHERE tenant_id = :tenant_id
ORDER BY name, id;

-- name: lock_providers
-- Lock the list of the tenant's providers until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.identity_providers:' || :tenant_id::uuid, 0));

-- name: insert_provider
-- Store a provider; no row if the tenant has one of this issuer.
INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, created_by)
VALUES (:tenant_id, :id, :name, :issuer, :client_id, :client_secret, :algorithm, :subject)
ON CONFLICT (tenant_id, issuer) DO NOTHING
RETURNING id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at;

-- name: lock_provider
-- A provider, locked until this transaction ends.
SELECT id, name, issuer, client_id, algorithm, created_at, created_by, disabled_at
FROM identity_providers WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE;

-- name: change_provider
-- Change the fields that are not null; a provider that is disabled already keeps its first time.
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
-- Delete a provider, with its identities and the sessions that it began.
DELETE FROM identity_providers WHERE tenant_id = :tenant_id AND id = :id RETURNING id;

-- name: find_offered
-- The providers by which people sign in to these tenants; read before a person is known.
SELECT tenant_id, tenant, id, name FROM find_identity_providers(:slugs::text[]);

-- name: find_registration
-- Our registration at a provider that is not disabled.
SELECT id, issuer, client_id, client_secret, algorithm
FROM identity_providers WHERE tenant_id = :tenant_id AND id = :id AND disabled_at IS NULL;

-- name: forget_sign_ins
-- Delete sign-ins that were not finished in time, and the oldest beyond :kept.
DELETE FROM provider_sign_ins
WHERE tenant_id = :tenant_id AND (expires_at <= clock_timestamp() OR id IN (
    SELECT s.id FROM provider_sign_ins s WHERE s.tenant_id = :tenant_id
    ORDER BY s.created_at DESC, s.id DESC OFFSET :max_stored
));

-- name: insert_sign_in
-- Store a sign-in that a browser begins.
INSERT INTO provider_sign_ins (
    tenant_id, id, provider_id, hash, browser, invitation_id, person_id, place, expires_at
) VALUES (
    :tenant_id, :id, :provider_id, :hash, :browser, :invitation_id, :person_id, :return_to,
    clock_timestamp() + :lifetime::interval
);

-- name: find_sign_in
-- The tenant of the sign-in with this keyed hash; read before a tenant is known.
SELECT tenant_id FROM find_provider_sign_in(:hash);

-- name: use_sign_in
-- Delete a sign-in and return its purpose; no row if it is over, or of another browser or provider.
DELETE FROM provider_sign_ins
WHERE tenant_id = :tenant_id AND hash = :hash AND browser = :browser AND provider_id = :provider_id
    AND expires_at > clock_timestamp()
RETURNING place AS return_to, invitation_id, person_id;

-- name: find_identity
-- The person of an identity, which is noted as used.
UPDATE provider_identities SET last_used_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND provider_id = :provider_id AND subject = :subject
RETURNING person_id;

-- name: insert_identity
-- Connect an identity to this member; no row if it is connected already, or the member has another one at this
-- provider.
INSERT INTO provider_identities (tenant_id, provider_id, subject, person_id)
VALUES (:tenant_id, :provider_id, :subject, :person_id)
ON CONFLICT DO NOTHING
RETURNING person_id;

-- name: act_as_person
-- Until this transaction ends, the rows of this person may be written as well.
SELECT set_config('recollect.person_id', :person_id::uuid::text, true);

-- name: insert_person
-- Store a person of this tenant who came by a provider.
INSERT INTO people (id, email, name, provider_tenant_id) VALUES (:person_id, :email, :name, :tenant_id);

-- name: list_own_identities
-- The identities of the person who has signed in, in all their tenants.
SELECT tenant_id, tenant, tenant_name, provider_id, provider_name, enabled, last_used_at FROM list_own_identities(:most);

-- name: lock_person
-- Lock the ways by which this person signs in until this transaction ends.
SELECT id FROM people WHERE id = :person_id FOR NO KEY UPDATE;

-- name: lock_sign_in_methods
-- Lock the ways by which this person signs in, in any cell, until this transaction at home ends. It is not the row of
-- lock_person, because the holder of this lock takes that row in another transaction.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.ways ' || :person_id::uuid::text, 0));

-- name: delete_identity
-- Delete a member's identity at a provider; the sessions that it began end.
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
