-- A tenant that has departed from one cell and is not here in the other yet is served by none. Whoever moves it may be killed
-- between the two; then any process that reaches both cells ends the switch. What lets it is a secret: the mover gives it to
-- the target once both cells are equal, and the source tells it once it has said, by the same statement, that the tenant
-- departed. So the source alone decides, by one row: a target is here only where that hold of writes ended in a departure.

-- In the target, while the tenant arrives: what lets it be here. In the source, once it has departed: the same, and where to.
ALTER TABLE tenants ADD COLUMN switch_secret uuid;
ALTER TABLE tenants ADD COLUMN departed_to text;

-- Of these tenants, or of those whose credential has one of these keyed hashes: who has departed from here, where to, and the
-- secret; not until whoever moves them should have ended the switch (held_until).
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

-- Have a tenant be here that arrives and whose secret this is; whether it is here then. Sessions of its own providers end: a
-- password that was changed meanwhile ended some of them, and only the mover finds out which.
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

-- Have the directory name the cell to which a tenant moves, which is here there; nothing where that move has not come so far,
-- or is over, and another one has begun.
CREATE FUNCTION follow_move(tenant uuid, moved_to text)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    INSERT INTO tenant_cells AS c (id, slug, cell)
    SELECT m.id, m.slug, m.target FROM tenant_moves m WHERE m.id = tenant AND m.target = moved_to AND m.step = 'switch'
    ON CONFLICT (id) DO UPDATE SET cell = EXCLUDED.cell, since = clock_timestamp() WHERE c.cell <> EXCLUDED.cell
$$;

-- As before, without what else differs between two cells.
CREATE OR REPLACE FUNCTION digest_of_tenant(tenant uuid)
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

REVOKE ALL ON FUNCTION find_departures(uuid[], text[], bytea[]), end_switch(uuid, uuid), follow_move(uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_departures(uuid[], text[], bytea[]), end_switch(uuid, uuid), follow_move(uuid, text) TO recollect_app;
