-- Cells: in which one a tenant is, and moves between them. The home cell has the directory; every cell has these
-- tables.
--
-- Several PostgreSQL clusters with this one schema, each of which holds some tenants whole. Exactly one cell says of
-- a tenant that it is here (tenants.place).
--
-- A tenant that has departed from one cell and is not here in the other yet is served by none. Whoever moves it may
-- be killed between the two; then any process that reaches both cells ends the switch. What lets it is a secret: the
-- mover gives it to the target once both cells are equal, and the source tells it once it has said, by the same
-- statement, that the tenant departed. So the source alone decides, by one row: a target is here only where that hold
-- of writes ended in a departure.

-- The directory, in the home cell: in which cell a tenant is that is not at home, or once was not. A tenant that it
-- does not name is at home. Its id is not called tenant_id: these rows are the service's, and stay where the tenant
-- moves.
CREATE TABLE tenant_cells (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    cell text NOT NULL CHECK (cell ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$'),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE tenant_cells ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_cells TO recollect_operator USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_cells TO recollect_operator;

-- The moves that are under way, in the home cell: each step is noted before it is done, so that another can go on
-- with it. The id is the tenant's. It is not called tenant_id: the row is the service's, and does not move.
CREATE TABLE tenant_moves (
    id uuid PRIMARY KEY,
    slug text NOT NULL,
    source text NOT NULL,
    target text NOT NULL CHECK (target <> source),
    step text NOT NULL CHECK (step IN ('prepare', 'copy', 'hold', 'check', 'switch', 'clean', 'undo')),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    step_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE tenant_moves ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_moves TO recollect_operator USING (true);
GRANT SELECT ON tenant_moves TO recollect_operator;

-- What this cell says of these tenants, whom it may serve or not, or of those whose credential has one of these keyed
-- hashes: asked where no cell finds a credential, so that nobody is told that it does not hold while its tenant is
-- between two cells.
CREATE FUNCTION find_places(tenant_ids uuid[], slugs text[], secret_hashes bytea[])
RETURNS TABLE (place text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.place FROM tenants t WHERE t.id IN (
        SELECT unnest(tenant_ids)
        UNION ALL SELECT n.id FROM tenants n WHERE n.slug = ANY (slugs)
        UNION ALL SELECT k.tenant_id FROM api_keys k WHERE k.hash = ANY (secret_hashes)
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = ANY (secret_hashes)
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = ANY (secret_hashes)
        UNION ALL SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = ANY (secret_hashes)
        UNION ALL SELECT i.tenant_id FROM invitations i WHERE i.hash = ANY (secret_hashes)
        UNION ALL SELECT p.tenant_id FROM provider_sign_ins p WHERE p.hash = ANY (secret_hashes)
        UNION ALL SELECT s.confined_to FROM sessions s WHERE s.hash = ANY (secret_hashes)
    )
    LIMIT 200
$$;

-- In which cell these tenants are, as far as the directory names them; asked before a tenant is known.
CREATE FUNCTION find_cells(tenants uuid[], slugs text[])
RETURNS TABLE (tenant_id uuid, slug text, cell text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT c.id, c.slug, c.cell FROM tenant_cells c WHERE c.id = ANY (find_cells.tenants) OR c.slug = ANY (slugs)
    ORDER BY c.slug
    LIMIT 200
$$;

-- What a cell says of a tenant that is leaving, or has left, stays as it is: the other cell has it from there. What an
-- operator changes of one whose hold is over has it be here again. A hold may be renewed.
CREATE FUNCTION keep_moving_tenant()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF (to_jsonb(OLD) - 'held_until') = (to_jsonb(NEW) - 'held_until') THEN
        RETURN NEW;
    ELSIF OLD.place = 'leaving' AND OLD.held_until <= clock_timestamp() THEN
        NEW.place := 'here';
        NEW.held_until := NULL;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
END $$;

-- How many rows of each table are a tenant's, and the sum of what 64 bits of each row's MD5 say: equal in two cells
-- where the rows are, in whichever order they were read. The tenant's own row counts without what differs between two
-- cells: its place, that it moves, until when one of them holds the writes, and what a switch needs.
CREATE FUNCTION digest_of_tenant(tenant uuid)
RETURNS TABLE (name text, total bigint, digest numeric)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' SET extra_float_digits = 1
AS $$
DECLARE
    of_place text[] := ARRAY['place', 'moving', 'held_until', 'switch_secret', 'departed_to'];
BEGIN
    name := 'tenants';
    SELECT count(*), sum(('x' || left(md5((to_jsonb(t) - of_place)::text), 16))::bit(64)::bigint) INTO total, digest
    FROM tenants t WHERE t.id = tenant;
    RETURN NEXT;
    FOREACH name IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'SELECT count(*), sum((''x'' || left(md5(r::text), 16))::bit(64)::bigint) FROM %I r WHERE r.tenant_id = $1',
            name) INTO total, digest USING tenant;
        RETURN NEXT;
    END LOOP;
END $$;

-- Delete so many rows at most of a tenant that is not served here, because it is still arriving or has departed;
-- whether none is left. Never of one that is here, nor while what is deleted here would be deleted in the other cell.
-- The rows go as a replica's do, without triggers and checks: all of them go.
CREATE FUNCTION erase_moved_step(tenant uuid, most bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = auto
AS $$
DECLARE
    found_place text;
    theirs text;
    gone bigint;
    room bigint := most;
BEGIN
    SELECT t.place INTO found_place FROM tenants t WHERE t.id = tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN true;
    ELSIF found_place NOT IN ('arriving', 'departed') THEN
        RAISE EXCEPTION 'the tenant is here' USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF EXISTS (SELECT 1 FROM pg_publication WHERE pubname = 'recollect_move_' || replace(tenant::text, '-', '')) THEN
        RAISE EXCEPTION 'the rows of the tenant are being copied' USING ERRCODE = 'object_in_use';
    END IF;
    PERFORM set_config('session_replication_role', 'replica', true);
    FOREACH theirs IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'DELETE FROM %1$I WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
            SELECT ctid FROM %1$I WHERE tenant_id = $1 LIMIT $2))', theirs) USING tenant, room;
        GET DIAGNOSTICS gone = ROW_COUNT;
        room := room - gone;
        EXIT WHEN room <= 0;
    END LOOP;
    PERFORM set_config('session_replication_role', 'origin', true);
    IF room > 0 THEN
        DELETE FROM sessions s WHERE s.confined_to = tenant;
        DELETE FROM people p WHERE p.provider_tenant_id = tenant;
        DELETE FROM tenants t WHERE t.id = tenant;
    END IF;
    RETURN room > 0;
END $$;

-- Have a tenant be here again whose hold is over; whether it is here. Whoever asks holds the lock of those who write,
-- which a move takes alone when it begins a hold, and when it ends one by the tenant's departure.
CREATE FUNCTION end_hold(tenant uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    UPDATE tenants t SET place = 'here', held_until = NULL
    WHERE t.id = tenant AND t.place = 'leaving' AND t.held_until <= clock_timestamp();
    RETURN EXISTS (SELECT FROM tenants t WHERE t.id = tenant AND t.place = 'here');
END $$;

-- How many moves of tenants are at each step, and for how long the oldest of them has been: what the gauges of home's
-- workers tell. Numbers only, none of a tenant; nothing is noted in other cells.
CREATE FUNCTION moves_under_way()
RETURNS TABLE (step text, moves bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.step, count(m.id),
        coalesce(greatest(extract(epoch FROM statement_timestamp() - min(m.step_at)), 0), 0)::double precision
    FROM unnest(ARRAY['prepare', 'copy', 'hold', 'check', 'switch', 'clean', 'undo']) AS s (step)
    LEFT JOIN tenant_moves m ON m.step = s.step
    GROUP BY s.step
$$;

-- Of these tenants, or of those whose credential has one of these keyed hashes: who has departed from here, where to,
-- and the secret; not until whoever moves them should have ended the switch (held_until).
CREATE FUNCTION find_departures(tenant_ids uuid[], slugs text[], secret_hashes bytea[])
RETURNS TABLE (tenant_id uuid, departed_to text, switch_secret uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.departed_to, t.switch_secret FROM tenants t
    WHERE t.place = 'departed' AND t.switch_secret IS NOT NULL AND t.held_until <= clock_timestamp() AND t.id IN (
        SELECT unnest(tenant_ids)
        UNION ALL SELECT n.id FROM tenants n WHERE n.slug = ANY (slugs)
        UNION ALL SELECT k.tenant_id FROM api_keys k WHERE k.hash = ANY (secret_hashes)
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = ANY (secret_hashes)
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = ANY (secret_hashes)
        UNION ALL SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = ANY (secret_hashes)
        UNION ALL SELECT i.tenant_id FROM invitations i WHERE i.hash = ANY (secret_hashes)
        UNION ALL SELECT p.tenant_id FROM provider_sign_ins p WHERE p.hash = ANY (secret_hashes)
        UNION ALL SELECT s.confined_to FROM sessions s WHERE s.hash = ANY (secret_hashes)
    )
    LIMIT 200
$$;

-- Have a tenant be here that arrives and whose secret this is; whether it is here then. Sessions of its own providers
-- end: a password that was changed meanwhile ended some of them, and only the mover finds out which.
CREATE FUNCTION end_switch(tenant uuid, secret uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
BEGIN
    UPDATE tenants t SET place = 'here', switch_secret = NULL
    WHERE t.id = tenant AND t.place = 'arriving' AND t.switch_secret = secret;
    IF FOUND THEN
        UPDATE sessions s SET revoked_at = clock_timestamp() WHERE s.confined_to = tenant AND s.revoked_at IS NULL;
    END IF;
    RETURN EXISTS (SELECT FROM tenants t WHERE t.id = tenant AND t.place IN ('here', 'leaving'));
END $$;

-- Have the directory name the cell to which a tenant moves, which is here there; nothing where that move has not come
-- so far, or is over, and another one has begun.
CREATE FUNCTION follow_move(tenant uuid, moved_to text)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    INSERT INTO tenant_cells AS c (id, slug, cell)
    SELECT m.id, m.slug, m.target FROM tenant_moves m WHERE m.id = tenant AND m.target = moved_to AND m.step = 'switch'
    ON CONFLICT (id) DO UPDATE SET cell = EXCLUDED.cell, since = clock_timestamp() WHERE c.cell <> EXCLUDED.cell
$$;

-- A switch that nobody ended is ended by the next call of its tenant. Of a tenant that nobody calls, a worker of home
-- does so.
-- Tenants whose move was noted to switch, and which the directory does not follow yet, and from which cell each was
-- to depart: the oldest first, 100 at most. Whether one has departed, and where to, its source alone tells
-- (find_departures).
CREATE FUNCTION list_open_switches(most bigint)
RETURNS TABLE (tenant_id uuid, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT m.id, m.source FROM tenant_moves m
    WHERE m.step = 'switch' AND NOT EXISTS (SELECT FROM tenant_cells c WHERE c.id = m.id AND c.cell = m.target)
    ORDER BY m.step_at, m.id
    LIMIT least(most, 100)
$$;

CREATE TRIGGER keep_moving BEFORE UPDATE ON tenants FOR EACH ROW
    WHEN (OLD.place IN ('leaving', 'departed') AND NEW.place = OLD.place AND NEW IS DISTINCT FROM OLD)
    EXECUTE FUNCTION keep_moving_tenant();
