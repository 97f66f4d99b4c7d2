-- A tenant that leaves has its writes refused until it has moved, and no longer than until a moment that stands in its row:
-- whoever moves it may be gone. The first write after that moment has it be here again, so that what was written and what a
-- move may still do are decided by this one row, and not by anybody's clock.

-- Until when writes of a tenant that is leaving are refused; null: until somebody says otherwise.
ALTER TABLE tenants ADD COLUMN held_until timestamptz;

-- As before; one whose hold is over is worked on.
CREATE OR REPLACE VIEW tenants_staying AS
    SELECT t.id, t.slug, t.name, t.status, t.read_only, t.plan, t.retention_days, t.erase_at
    FROM tenants t WHERE t.place = 'here' OR (t.place = 'leaving' AND t.held_until <= statement_timestamp());

-- Have a tenant be here again whose hold is over; whether it is here. Whoever asks holds the lock of those who write, which
-- a move takes alone when it begins a hold, and when it ends one by the tenant's departure.
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

-- As before; a hold that is over holds nothing up.
CREATE OR REPLACE FUNCTION require_writable(ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
    found record;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
    SELECT t.status, t.read_only, t.place = 'here' AS is_here, t.place = 'leaving' AND t.held_until <= clock_timestamp() AS is_over
    INTO found FROM tenants t WHERE t.id = tenant;
    IF NOT found.is_here AND NOT (coalesce(found.is_over, false) AND (NOT ending OR end_hold(tenant))) THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    ELSIF found.status = 'suspended' THEN
        RAISE EXCEPTION 'the tenant is suspended' USING ERRCODE = 'RC002';
    ELSIF found.read_only THEN
        RAISE EXCEPTION 'the tenant is read-only' USING ERRCODE = 'RC001';
    END IF;
END $$;

-- As before; one whose hold is over is here.
CREATE OR REPLACE FUNCTION require_here(writes boolean, ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
    found record;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
    SELECT t.place, t.held_until <= clock_timestamp() AS is_over INTO found FROM tenants t WHERE t.id = tenant;
    IF found.place = 'here' OR (found.place = 'leaving' AND NOT writes) THEN
        RETURN;
    ELSIF found.place = 'leaving' AND found.is_over AND (NOT ending OR end_hold(tenant)) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'the tenant is not here' USING ERRCODE = 'RC003';
END $$;

-- As before; a session is written where the hold of its tenant is over.
CREATE OR REPLACE FUNCTION write_sessions_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.confined_to::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.confined_to], '{}', '{}') f;
    IF said = 'here' OR (said = 'leaving' AND end_hold(NEW.confined_to)) THEN
        RETURN NEW;
    ELSIF said = 'leaving' OR TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    END IF;
    RETURN NULL;
END $$;

-- As before; what an operator changes of one whose hold is over has it be here again. A hold may be renewed.
CREATE OR REPLACE FUNCTION keep_moving_tenant()
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

-- As before, without what else differs between two cells: until when one holds the writes.
CREATE OR REPLACE FUNCTION digest_of_tenant(tenant uuid)
RETURNS TABLE (name text, total bigint, digest numeric)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' SET extra_float_digits = 1
AS $$
BEGIN
    name := 'tenants';
    SELECT count(*), sum(('x' || left(md5((to_jsonb(t) - 'place' - 'moving' - 'held_until')::text), 16))::bit(64)::bigint)
    INTO total, digest
    FROM tenants t WHERE t.id = tenant;
    RETURN NEXT;
    FOREACH name IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'SELECT count(*), sum((''x'' || left(md5(r::text), 16))::bit(64)::bigint) FROM %I r WHERE r.tenant_id = $1',
            name) INTO total, digest USING tenant;
        RETURN NEXT;
    END LOOP;
END $$;

-- How many moves of tenants are at each step, and for how long the oldest of them has been: what the gauges of home's workers
-- tell. Numbers only, none of a tenant; nothing is noted in other cells.
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

REVOKE ALL ON FUNCTION end_hold(uuid), moves_under_way() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION end_hold(uuid) TO recollect_app;
GRANT EXECUTE ON FUNCTION moves_under_way() TO recollect_app;
