-- A tenant that is suspended read-only: its credentials hold, and what they would write is refused.

ALTER TABLE tenants ADD COLUMN read_only boolean NOT NULL DEFAULT false;

-- The end of a transaction that writes takes this lock with others, and a suspension takes it alone: once a suspension has
-- committed, nothing commits that began before it. Held for the moment between this and COMMIT.
CREATE FUNCTION lock_writes(tenant uuid, alone boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF alone THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('recollect.writes ' || tenant::text, 0));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
END $$;

-- Raise RC001 where the tenant of this transaction is read-only, RC002 where it is suspended: asked when a transaction that
-- writes begins, and again (ending) as the last thing before it commits, where it has written anything.
CREATE FUNCTION require_writable(ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
    found record;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM lock_writes(tenant, false);
    END IF;
    SELECT t.status, t.read_only INTO found FROM tenants t WHERE t.id = tenant;
    IF found.status = 'suspended' THEN
        RAISE EXCEPTION 'the tenant is suspended' USING ERRCODE = 'RC002';
    ELSIF found.read_only THEN
        RAISE EXCEPTION 'the tenant is read-only' USING ERRCODE = 'RC001';
    END IF;
END $$;

-- Jobs of a tenant that is read-only wait.
CREATE OR REPLACE FUNCTION tenants_with_due_jobs()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants t
    WHERE t.status = 'active' AND NOT t.read_only AND t.id IN (
        SELECT j.tenant_id FROM jobs j
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT j.tenant_id FROM jobs j WHERE j.expires_at <= statement_timestamp()
    )
    ORDER BY t.id
$$;

REVOKE ALL ON FUNCTION lock_writes(uuid, boolean), require_writable(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lock_writes(uuid, boolean), require_writable(boolean) TO recollect_app;
