-- Moves of tenants from one cell to another (docs/cells.md): what the command that moves them notes, compares and erases.

-- The moves that are under way, in the home cell: each step is noted before it is done, so that another can go on with it.
-- The id is the tenant's. It is not called tenant_id: the row is the service's, and does not move.
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

-- Whether another cell has rows of the tenant too, or may: from before the first is copied until the last of them, here or
-- there, is gone. Such a tenant is not deleted: a receipt would say that all of it went.
ALTER TABLE tenants ADD COLUMN moving boolean NOT NULL DEFAULT false;

-- What a cell says of a tenant that is leaving, or has left, stays as it is: the other cell has it from there.
CREATE FUNCTION keep_moving_tenant()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
END $$;
CREATE TRIGGER keep_moving BEFORE UPDATE ON tenants FOR EACH ROW
WHEN (OLD.place IN ('leaving', 'departed') AND NEW.place = OLD.place AND NEW IS DISTINCT FROM OLD) EXECUTE FUNCTION keep_moving_tenant();

-- How many rows of each table are a tenant's, and the sum of what 64 bits of each row's MD5 say: equal in two cells where
-- the rows are, in whichever order they were read. The tenant's own row counts without what differs: its place, and that it
-- moves.
CREATE FUNCTION digest_of_tenant(tenant uuid)
RETURNS TABLE (name text, total bigint, digest numeric)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' SET extra_float_digits = 1
AS $$
BEGIN
    name := 'tenants';
    SELECT count(*), sum(('x' || left(md5((to_jsonb(t) - 'place' - 'moving')::text), 16))::bit(64)::bigint) INTO total, digest
    FROM tenants t WHERE t.id = tenant;
    RETURN NEXT;
    FOREACH name IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'SELECT count(*), sum((''x'' || left(md5(r::text), 16))::bit(64)::bigint) FROM %I r WHERE r.tenant_id = $1',
            name) INTO total, digest USING tenant;
        RETURN NEXT;
    END LOOP;
END $$;

-- Delete so many rows at most of a tenant that is not served here, because it is still arriving or has departed; whether
-- none is left. Never of one that is here, nor while what is deleted here would be deleted in the other cell. The rows go
-- as a replica's do, without triggers and checks: all of them go.
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

REVOKE ALL ON FUNCTION keep_moving_tenant(), digest_of_tenant(uuid), erase_moved_step(uuid, bigint) FROM PUBLIC;
