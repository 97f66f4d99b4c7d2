-- fragment: move
-- A move that is under way: Move.
id, slug, source, target, step, began_at, step_at

-- name: try_lock
-- Be the only one who moves this tenant, until the connection ends.
SELECT pg_try_advisory_lock(hashtextextended('recollect.move ' || :slug::text, 0)) AS held;

-- name: insert_move
-- Note that a tenant is about to be moved; no row where it is already.
INSERT INTO tenant_moves (id, slug, source, target, step) VALUES (:id, :slug, :source, :target, 'prepare')
ON CONFLICT (id) DO NOTHING
RETURNING -- include: move
;

-- name: find_move
-- The move of the tenant of that slug.
SELECT -- include: move
FROM tenant_moves WHERE slug = :slug;

-- name: list_moves
-- All moves, the oldest first.
SELECT -- include: move
FROM tenant_moves ORDER BY began_at, id;

-- name: record_step
-- Note which step comes next.
UPDATE tenant_moves SET step = :step, step_at = clock_timestamp() WHERE id = :id;

-- name: delete_move
-- The move is over.
DELETE FROM tenant_moves WHERE id = :id;

-- name: set_cell
-- Have the directory name another cell for a tenant; no row where it does already.
INSERT INTO tenant_cells AS c (id, slug, cell) VALUES (:id, :slug, :cell)
ON CONFLICT (id) DO UPDATE SET cell = EXCLUDED.cell, since = clock_timestamp() WHERE c.cell <> EXCLUDED.cell
RETURNING id;

-- name: find_tenant
-- A tenant's id, what this cell says of it, and whether it is deleted.
SELECT id, place, erase_at IS NOT NULL AS deleted FROM tenants WHERE slug = :slug;

-- name: find_tenant_state
-- What this cell says of a tenant.
SELECT place FROM tenants WHERE id = :id;

-- name: lock_writes
-- Wait for writes of the tenant that are about to commit; none does until this transaction ends.
SELECT lock_writes(:id, true);

-- name: set_tenant_state
-- Say something else of a tenant, where this cell says one of :among of it; whether it does now. What was noted of the hold,
-- or the departure, that this ends goes with it.
UPDATE tenants SET place = :state, held_until = NULL, switch_secret = NULL, departed_to = NULL
WHERE id = :id AND place = ANY (:among::text[]) RETURNING id;

-- name: hold
-- Have a tenant that is here be leaving, for so long at most; until when. No row where it is not here.
UPDATE tenants SET place = 'leaving', held_until = clock_timestamp() + :most::interval
WHERE id = :id AND place IN ('here', 'leaving')
RETURNING held_until;

-- name: depart
-- Have a tenant be here no more, while this very hold stands: not once it is over, was ended by a write, or is another's.
-- Until when whoever moves it alone has it arrive; from then on the secret lets anybody.
UPDATE tenants SET place = 'departed', held_until = clock_timestamp() + :most::interval, departed_to = :target,
    switch_secret = :secret
WHERE id = :id AND place = 'leaving' AND held_until = :held_until AND held_until > clock_timestamp()
RETURNING id;

-- name: keep_switch_secret
-- What is to let a tenant be here that arrives, once the other cell has told it; whether it arrives.
UPDATE tenants SET switch_secret = :secret WHERE id = :id AND place = 'arriving' RETURNING id;

-- name: mark_moving
-- Note that a tenant is copied to another cell, unless it is deleted; whether it is noted.
UPDATE tenants SET moving = true WHERE id = :id AND erase_at IS NULL RETURNING id;

-- name: unmark_moving
-- Nothing of the tenant is in another cell any more.
UPDATE tenants SET moving = false WHERE id = :id AND moving;

-- name: read_tenant
-- The tenant's own row, as JSON, without its place.
SELECT to_jsonb(t) - 'place' AS tenant FROM tenants t WHERE t.id = :id;

-- name: put_tenant
-- The tenant's own row, from the source's, as one that is arriving; no row where this cell serves it already.
INSERT INTO tenants AS t (id, slug, name, status, read_only, plan, retention_days, time_zone, erase_at, created_at, place,
    moving)
SELECT r.id, r.slug, r.name, r.status, r.read_only, r.plan, r.retention_days, r.time_zone, r.erase_at, r.created_at,
    'arriving', true
FROM jsonb_populate_record(NULL::tenants, :tenant::jsonb) r
ON CONFLICT (id) DO UPDATE SET slug = EXCLUDED.slug, name = EXCLUDED.name, status = EXCLUDED.status,
    read_only = EXCLUDED.read_only, plan = EXCLUDED.plan, retention_days = EXCLUDED.retention_days,
    time_zone = EXCLUDED.time_zone, erase_at = EXCLUDED.erase_at, created_at = EXCLUDED.created_at,
    place = EXCLUDED.place, switch_secret = NULL
WHERE t.place = 'arriving'
RETURNING id;

-- name: plan_of
-- The name of a tenant's plan.
SELECT plan FROM tenants WHERE id = :id;

-- name: list_members
-- The ids of the people who are members of a tenant.
SELECT person_id FROM members WHERE tenant_id = :id ORDER BY person_id;

-- name: read_people
-- People who sign in at home, as a JSON array, without their passwords; nobody deletes their accounts until this transaction
-- ends.
SELECT coalesce(jsonb_agg(to_jsonb(p) - 'password_hash' - 'password_changed_at'), '[]') AS people FROM (
    SELECT h.* FROM people h WHERE h.id = ANY (:ids::uuid[]) AND h.provider_tenant_id IS NULL ORDER BY h.id FOR KEY SHARE
) p;

-- name: read_own_people
-- The people who are of this tenant alone, by its identity providers or by a password, as a JSON array.
SELECT coalesce(jsonb_agg(to_jsonb(p)), '[]') AS people FROM people p WHERE p.provider_tenant_id = :id;

-- name: put_people
-- Copies of people, as they are now.
INSERT INTO people AS p
SELECT r.* FROM jsonb_populate_recordset(NULL::people, :people::jsonb) r
ON CONFLICT (id) DO UPDATE SET email = EXCLUDED.email, name = EXCLUDED.name,
    provider_tenant_id = EXCLUDED.provider_tenant_id, unproven = EXCLUDED.unproven,
    password_hash = CASE WHEN EXCLUDED.unproven THEN EXCLUDED.password_hash ELSE p.password_hash END;

-- name: read_passkeys
-- The passkeys of people who are of this tenant alone, as a JSON array.
SELECT coalesce(jsonb_agg(to_jsonb(k)), '[]') AS passkeys
FROM passkeys k JOIN people p ON p.id = k.person_id
WHERE p.unproven AND p.provider_tenant_id = :id;

-- name: delete_passkeys
-- Forget the passkeys that were copied before: one of them may have been removed since.
DELETE FROM passkeys k USING people p WHERE p.id = k.person_id AND p.unproven AND p.provider_tenant_id = :id;

-- name: put_passkeys
-- Passkeys, as they are now.
INSERT INTO passkeys SELECT r.* FROM jsonb_populate_recordset(NULL::passkeys, :passkeys::jsonb) r;

-- name: read_sessions
-- The sessions that a tenant's own identity providers began and that hold, of those people who are copied, as a JSON array.
-- Somebody who is a member no more may have one that has not ended.
SELECT coalesce(jsonb_agg(to_jsonb(s)), '[]') AS sessions FROM sessions s
WHERE s.confined_to = :id AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp() AND (
    EXISTS (SELECT FROM members m WHERE m.tenant_id = :id AND m.person_id = s.person_id)
    OR EXISTS (SELECT FROM people p WHERE p.id = s.person_id AND p.provider_tenant_id = :id)
);

-- name: delete_sessions
-- Forget the sessions that were copied before: one of them may have ended since.
DELETE FROM sessions WHERE confined_to = :id;

-- name: put_sessions
-- Sessions, as they are now.
INSERT INTO sessions SELECT r.* FROM jsonb_populate_recordset(NULL::sessions, :sessions::jsonb) r;

-- name: list_session_people
-- The people who have sessions that a tenant's own identity providers began, and that hold.
SELECT DISTINCT person_id FROM sessions
WHERE confined_to = :id AND revoked_at IS NULL AND expires_at > clock_timestamp()
ORDER BY person_id;

-- name: read_password_changes
-- When these people took another password, and how often, as a JSON array of objects; not of people who are of one tenant
-- alone, whose sessions end with their password in the same cell.
SELECT coalesce(jsonb_agg(jsonb_build_object('id', p.id, 'at', p.password_changed_at, 'number', p.password_changes)),
    '[]')
    AS changes
FROM people p
WHERE p.id = ANY (:ids::uuid[]) AND p.password_changed_at IS NOT NULL AND NOT p.unproven;

-- name: end_sessions
-- End the sessions that a tenant's own identity providers began before their person took another password: by how many there
-- had been then; by two servers' clocks where that was not counted yet.
UPDATE sessions s SET revoked_at = clock_timestamp()
FROM jsonb_to_recordset(:changes::jsonb) AS c (id uuid, at timestamptz, number bigint)
WHERE s.confined_to = :id AND s.person_id = c.id AND s.revoked_at IS NULL
    AND CASE WHEN s.password_changes IS NULL THEN s.created_at < c.at ELSE s.password_changes < c.number END;

-- name: delete_people
-- Forget copies of people who are members of no tenant of this cell any more.
DELETE FROM people p
WHERE p.provider_tenant_id IS NULL AND NOT EXISTS (SELECT 1 FROM members m WHERE m.person_id = p.id);

-- name: describe_server
-- What a move needs to know of a server and of this login on it. How many replication origins there may be is a setting of its
-- own from PostgreSQL 18 on; one that is there takes its place once somebody works with it.
SELECT current_setting('server_version_num')::int AS version, current_setting('wal_level') AS wal_level,
    current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots)::int AS free_slots,
    current_setting('max_wal_senders')::int
        - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender')::int AS free_senders,
    current_setting('max_logical_replication_workers')::int
        - (SELECT count(*) FROM pg_stat_activity
            WHERE backend_type LIKE 'logical replication%worker')::int AS free_workers,
    coalesce(current_setting('max_active_replication_origins', true), current_setting('max_replication_slots'))::int
        - (SELECT count(*) FROM pg_replication_origin)::int AS free_origins,
    least(
        current_setting('max_sync_workers_per_subscription')::int,
        current_setting('max_logical_replication_workers')::int - 1
    ) AS copies,
    (SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user) AS may_replicate,
    (SELECT rolsuper OR EXISTS (
        SELECT 1 FROM pg_roles role WHERE role.rolname = 'pg_create_subscription' AND pg_has_role(role.oid, 'USAGE')
    ) FROM pg_roles WHERE rolname = current_user) AND has_database_privilege(current_database(), 'CREATE')
        AS may_subscribe,
    has_parameter_privilege('session_replication_role', 'SET') AS may_erase,
    pg_has_role('recollect_owner', 'USAGE') AND has_database_privilege(current_database(), 'CREATE') AS may_publish;

-- name: list_migrations
-- The migrations that a cell has.
SELECT name FROM schema_migrations ORDER BY name;

-- name: tables_of_tenants
-- The tables whose rows say whose they are.
SELECT tables_of_tenants() AS tables;

-- name: digest_of_tenant
-- How many rows of each table are a tenant's, and what they come to.
SELECT name, total, digest FROM digest_of_tenant(:id);

-- name: count_of_tenant
-- How many rows of each table are a tenant's, as JSON.
SELECT count_of_tenant(:id) AS counts;

-- name: wait_for_locks
-- Let this connection wait for a lock for so long, 0 is as long as it takes; :most null: as when it was begun.
SELECT set_config('lock_timeout', coalesce(:most::text, s.reset_val), false) AS most
FROM pg_settings s WHERE s.name = 'lock_timeout';

-- name: hide_statements
-- Have this transaction's statements written to no log, failed or slow, as far as this login may say so.
SELECT set_config(p.name, p.silent, true) AS silent
FROM (VALUES ('log_min_error_statement', 'panic'), ('log_statement', 'none'), ('log_min_duration_statement', '-1'),
    ('log_min_duration_sample', '-1'), ('log_transaction_sample_rate', '0')) AS p (name, silent)
WHERE has_parameter_privilege(p.name, 'SET');

-- name: make_slot
-- Keep the source's log for a target that will follow; where there is no such slot.
SELECT pg_create_logical_replication_slot(:name, 'pgoutput') AS slot
WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots WHERE slot_name = :name);

-- name: drop_slot
-- Keep the source's log no longer; raises an error while the target still reads it.
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = :name;

-- name: find_subscription
-- Whether the target has this subscription.
SELECT EXISTS (
    SELECT 1 FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
    WHERE s.subname = :name AND d.datname = current_database()
) AS found;

-- name: count_workers
-- How many processes of the target copy or follow, the subscription's number, and the identifier of the target's server.
SELECT s.oid::bigint AS number, (SELECT c.system_identifier FROM pg_control_system() c) AS system,
    (SELECT count(*) FROM pg_stat_subscription w WHERE w.subid = s.oid AND w.pid IS NOT NULL) AS workers
FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
WHERE s.subname = :name AND d.datname = current_database();

-- name: end_copy_workers
-- End the target's side of what copies tables for a subscription, which does not look whether that was stopped.
SELECT pg_terminate_backend(pid) FROM pg_stat_subscription
WHERE subid = :number::bigint::oid AND relid IS NOT NULL AND pid IS NOT NULL;

-- name: end_copies
-- End the source's side of what copies tables for a subscription: each has a slot, which PostgreSQL names by the number of the
-- subscription, that of the table, and the identifier of the subscriber's server. Another server's may have the same numbers.
SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
WHERE slot_name ~ ('^pg_' || :number::bigint || '_sync_[0-9]+_' || :system::bigint || '$') AND active_pid IS NOT NULL;

-- name: drop_copy_slots
-- Drop the slots of what copied tables for a subscription; raises an error while one is read.
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
WHERE slot_name ~ ('^pg_' || :number::bigint || '_sync_[0-9]+_' || :system::bigint || '$');

-- name: copying
-- How far a target is. What follows the log (relid null) and cannot reach the source is started again and again, and counted
-- nowhere as an error: it has not heard from there then.
SELECT (SELECT count(*) FROM pg_subscription_rel relation WHERE relation.srsubid = subscription.oid
    AND relation.srsubstate = 'r') AS ready,
    (SELECT count(*) FROM pg_subscription_rel relation WHERE relation.srsubid = subscription.oid) AS tables,
    coalesce((SELECT errors.apply_error_count + errors.sync_error_count FROM pg_stat_subscription_stats errors
        WHERE errors.subid = subscription.oid), 0)
        AS errors,
    subscription.subenabled AS enabled,
    EXISTS (SELECT FROM pg_stat_subscription worker
        WHERE worker.subid = subscription.oid AND worker.relid IS NULL
            AND worker.last_msg_receipt_time IS NOT NULL) AS heard
FROM pg_subscription subscription JOIN pg_database db ON db.oid = subscription.subdbid
WHERE subscription.subname = :name AND db.datname = current_database();

-- name: mark_log
-- Write a mark to the source's log, after all that has committed; where it is.
SELECT pg_logical_emit_message(true, 'recollect.move', '')::text AS at;

-- name: log_of
-- How far the target has confirmed the source's log, or has to go until :at; null :at is where the log ends now.
SELECT greatest(0, pg_wal_lsn_diff(coalesce(:at::text::pg_lsn, pg_current_wal_lsn()),
    confirmed_flush_lsn))::bigint AS behind, coalesce(wal_status = 'lost', false) AS lost
FROM pg_replication_slots WHERE slot_name = :name;

-- name: erase_moved_step
-- Erase so many rows of a tenant that is not served here; whether none is left.
SELECT erase_moved_step(:id, :rows) AS done;
