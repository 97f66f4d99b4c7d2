-- name: list_issuers
-- All issuers that the tenant trusts, by name: there are few.
SELECT id, name, issuer, algorithm, claim, rules, created_at, created_by, disabled_at
FROM trusted_issuers WHERE tenant_id = :tenant_id
ORDER BY name, id;

-- name: lock_issuers
-- Lock the list of the tenant's issuers until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.trusted_issuers:' || :tenant_id::uuid, 0));

-- name: insert_issuer
-- Store an issuer; no row if the tenant trusts it already.
INSERT INTO trusted_issuers (tenant_id, id, name, issuer, algorithm, claim, rules, created_by)
VALUES (:tenant_id, :id, :name, :issuer, :algorithm, :claim, :rules::jsonb, :subject)
ON CONFLICT (tenant_id, issuer) DO NOTHING
RETURNING id, name, issuer, algorithm, claim, rules, created_at, created_by, disabled_at;

-- name: lock_issuer
-- An issuer, locked until this transaction ends.
SELECT id, name, issuer, algorithm, claim, rules, created_at, created_by, disabled_at
FROM trusted_issuers WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE;

-- name: change_issuer
-- Change the fields that are not null; an issuer that is disabled already keeps its first time.
UPDATE trusted_issuers SET
    name = coalesce(:name, name),
    algorithm = coalesce(:algorithm, algorithm),
    claim = coalesce(:claim, claim),
    rules = coalesce(:rules::jsonb, rules),
    disabled_at = CASE :enabled::boolean
        WHEN true THEN NULL
        WHEN false THEN coalesce(disabled_at, clock_timestamp())
        ELSE disabled_at
    END
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, name, issuer, algorithm, claim, rules, created_at, created_by, disabled_at;

-- name: delete_issuer
-- Delete an issuer.
DELETE FROM trusted_issuers WHERE tenant_id = :tenant_id AND id = :id RETURNING id;

-- name: find_issuer
-- An issuer as a tenant trusts it; read before a tenant is known.
SELECT tenant_id, tenant, tenant_status, id, issuer, algorithm, claim, rules, plan, requests_per_minute,
    key_requests_per_minute, concurrent_calls
FROM find_trusted_issuer(:tenant, :issuer);

-- name: list_addresses
-- The addresses of the issuers that a tenant trusts; read before a tenant is known.
SELECT issuer FROM list_trusted_issuers(:tenant);
