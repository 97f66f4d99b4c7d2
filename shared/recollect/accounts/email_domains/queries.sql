-- name: list_domains
-- All domains that the tenant claims: there are few.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id
ORDER BY domain, id;

-- name: lock_domains
-- The domains of the tenant, which nobody adds to until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.email_domains:' || :tenant_id::uuid, 0));

-- name: insert_domain
-- A new claim; nothing where the tenant claims the domain already.
INSERT INTO email_domains (tenant_id, id, domain, secret, role, created_by)
VALUES (:tenant_id, :id, :domain, :secret, :role, :subject)
ON CONFLICT (tenant_id, domain) DO NOTHING
RETURNING id, domain, secret, role, created_at, created_by, verified_at, checked_at;

-- name: find_domain
-- A claim by its id.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id AND id = :id;

-- name: lock_domain
-- A claim, which nobody changes until this transaction ends.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE;

-- name: find_claim
-- A claim by its domain.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id AND domain = :domain;

-- name: set_role
-- Another role for who joins from now on.
UPDATE email_domains SET role = :role
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, domain, secret, role, created_at, created_by, verified_at, checked_at;

-- name: release_domain
-- Whether the domain may be this tenant's: another one's proof that is old gives way.
SELECT release_email_domain(:domain);

-- name: note_proven
-- The DNS says that the domain is the tenant's.
UPDATE email_domains
SET verified_at = coalesce(verified_at, clock_timestamp()), checked_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, domain, secret, role, created_at, created_by, verified_at, checked_at;

-- name: note_unproven
-- The DNS says it no more.
UPDATE email_domains SET verified_at = NULL WHERE tenant_id = :tenant_id AND id = :id;

-- name: delete_domain
-- One claim less.
DELETE FROM email_domains WHERE tenant_id = :tenant_id AND id = :id RETURNING id;

-- name: find_tenant
-- The tenant whose a domain is; asked before anybody is known.
SELECT tenant FROM find_email_domain(:domain);
