-- name: list_members
-- Members after a person's id; at most :limit.
SELECT m.person_id, p.email, p.name, m.role, m.created_at
FROM members m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = :tenant_id AND (:after::uuid IS NULL OR m.person_id > :after)
ORDER BY m.person_id
LIMIT :limit;

-- name: find_member
-- One member.
SELECT m.person_id, p.email, p.name, m.role, m.created_at
FROM members m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = :tenant_id AND m.person_id = :person_id;

-- name: find_account_member
-- A member of this address who signs in by an account of their own; not one whom an identity provider brought.
SELECT m.person_id FROM members m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = :tenant_id AND p.email = :email AND (p.provider_tenant_id IS NULL OR p.unproven)
LIMIT 1;

-- name: lock_members
-- The owners and one other, in one order, until this transaction ends: the number of owners cannot change before then.
SELECT person_id, role FROM members
WHERE tenant_id = :tenant_id AND (role = 'owner' OR person_id = :person_id)
ORDER BY person_id
FOR UPDATE;

-- name: lock_number
-- One transaction of the tenant at a time counts its members and adds one.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.members ' || :tenant_id::uuid::text, 0));

-- name: count_members
-- The number of members, counted up to :most.
SELECT count(*) FROM (SELECT FROM members WHERE tenant_id = :tenant_id LIMIT :most::bigint) AS m;

-- name: insert_member
-- A new member; nothing where the person is one already.
INSERT INTO members (tenant_id, person_id, role) VALUES (:tenant_id, :person_id, :role)
ON CONFLICT (tenant_id, person_id) DO NOTHING
RETURNING person_id;

-- name: set_role
-- Another role.
UPDATE members SET role = :role WHERE tenant_id = :tenant_id AND person_id = :person_id;

-- name: delete_member
-- One member less.
DELETE FROM members WHERE tenant_id = :tenant_id AND person_id = :person_id;

-- name: insert_invitation
-- An invitation.
INSERT INTO invitations (tenant_id, id, email, role, hash, created_by, expires_at)
VALUES (:tenant_id, :id, :email, :role, :hash, :subject, clock_timestamp() + :lifetime::interval)
RETURNING id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at;

-- name: count_invitations
-- The number of invitations, void ones included, and of those that hold and are for other addresses than :email, each
-- counted up to :most.
SELECT
    (SELECT count(*) FROM (SELECT FROM invitations WHERE tenant_id = :tenant_id LIMIT :most::bigint) AS i) AS stored,
    (SELECT count(*) FROM (
        SELECT FROM invitations
        WHERE tenant_id = :tenant_id AND email <> :email AND accepted_at IS NULL AND revoked_at IS NULL
            AND expires_at > clock_timestamp()
        LIMIT :most::bigint
    ) AS i) AS open;

-- name: forget_void_invitation
-- Delete the oldest invitation that does not hold, of those that do not count as sent within a day; whether there was one.
SELECT forget_void_invitation();

-- name: revoke_earlier_invitations
-- Those of the address that were made before one hold no more.
UPDATE invitations i SET revoked_at = clock_timestamp()
FROM invitations n
WHERE n.tenant_id = :tenant_id AND n.id = :id AND i.tenant_id = :tenant_id AND i.email = n.email
    AND (i.created_at, i.id) < (n.created_at, n.id) AND i.accepted_at IS NULL AND i.revoked_at IS NULL;

-- name: lock_invitations
-- Until this transaction ends, nobody else of the tenant invites, and its mails are not counted by others.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.invitation_mails.' || (:tenant_id)::uuid::text, 0));

-- name: claim_invitation_mail
-- Note that an invitation is sent, unless :per_day were in 24 hours.
UPDATE invitations SET mailed_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND id = :id AND :per_day::bigint > (
    SELECT count(*) FROM invitations i
    WHERE i.tenant_id = :tenant_id AND i.mailed_at > clock_timestamp() - interval '24 hours'
)
RETURNING id;

-- name: release_invitation_mail
-- Note that an invitation was not sent after all.
UPDATE invitations SET mailed_at = NULL WHERE tenant_id = :tenant_id AND id = :id;

-- name: list_invitations
-- Invitations after an id, void ones too; at most :limit.
SELECT id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at
FROM invitations
WHERE tenant_id = :tenant_id AND (:after::uuid IS NULL OR id > :after)
ORDER BY id
LIMIT :limit;

-- name: lock_invitation
-- One invitation, which nobody changes until this transaction ends.
SELECT id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at
FROM invitations
WHERE tenant_id = :tenant_id AND id = :id
FOR UPDATE;

-- name: revoke_invitation
-- Make an invitation void; one that is void or accepted stays as it is.
UPDATE invitations
SET revoked_at = CASE WHEN accepted_at IS NULL THEN coalesce(revoked_at, clock_timestamp()) ELSE revoked_at END
WHERE tenant_id = :tenant_id AND id = :id
RETURNING id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at;

-- name: revoke_invitations_of
-- Void the valid invitations that this person made, except those for the roles :kept.
UPDATE invitations SET revoked_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND created_by = :created_by AND role <> ALL (:except_roles::text[])
    AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > clock_timestamp()
RETURNING id;

-- name: find_invitation
-- The invitation with this keyed hash, and its tenant; asked before a tenant is known.
SELECT tenant_id, tenant, tenant_name, tenant_status, id, email, role, expires_at, accepted_at, revoked_at,
    mailed_at, clock_timestamp() AS read_at
FROM find_invitation(:hash);

-- name: find_invited
-- Whose address an invitation is for.
SELECT email FROM invitations WHERE tenant_id = :tenant_id AND id = :id;

-- name: accept_invitation
-- Use an invitation up; nothing where it holds no more, also where another has just used it.
UPDATE invitations SET accepted_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND id = :id AND accepted_at IS NULL AND revoked_at IS NULL
    AND expires_at > clock_timestamp()
RETURNING role;
