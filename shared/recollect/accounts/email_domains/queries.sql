-- name: list_domains
-- All domains that the tenant claims: there are few.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id
ORDER BY domain, id;

-- name: lock_domains
-- Lock the list of the tenant's domains until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.email_domains:' || :tenant_id::uuid, 0));

-- name: insert_domain
-- Store a claim; no row if the tenant claims the domain already.
INSERT INTO email_domains (tenant_id, id, domain, secret, role, created_by)
VALUES (:tenant_id, :id, :domain, :secret, :role, :subject)
ON CONFLICT (tenant_id, domain) DO NOTHING
RETURNING id, domain, secret, role, created_at, created_by, verified_at, checked_at;

-- name: find_domain
-- A claim by its id.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id AND id = :id;

-- name: lock_domain
-- A claim, locked until this transaction ends.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE;

-- name: find_claim
-- A claim by its domain.
SELECT id, domain, secret, role, created_at, created_by, verified_at, checked_at
FROM email_domains WHERE tenant_id = :tenant_id AND domain = :domain;

-- name: is_fresh
-- Whether a claim is proven, and the DNS proved it within this time.
SELECT verified_at IS NOT NULL AND coalesce(checked_at > clock_timestamp() - :within::interval, false) FROM email_domains
WHERE tenant_id = :tenant_id AND id = :id;

-- name: set_role
-- Change the role in which people join.
UPDATE email_domains SET role = :role
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, domain, secret, role, created_at, created_by, verified_at, checked_at;

-- name: release_domain
-- Remove another tenant's old proof of the domain; returns whether the domain may be this tenant's.
SELECT release_email_domain(:domain);

-- name: note_proven
-- Store that the DNS proves the claim.
UPDATE email_domains
SET verified_at = coalesce(verified_at, clock_timestamp()), checked_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, domain, secret, role, created_at, created_by, verified_at, checked_at;

-- name: note_unproven
-- Store that the DNS does not prove the claim.
UPDATE email_domains SET verified_at = NULL WHERE tenant_id = :tenant_id AND id = :id;

-- name: delete_domain
-- Delete a claim.
DELETE FROM email_domains WHERE tenant_id = :tenant_id AND id = :id RETURNING id;

-- name: find_tenant
-- The tenant that has proven a domain; read before a person is known.
SELECT tenant FROM find_email_domain(:domain);
