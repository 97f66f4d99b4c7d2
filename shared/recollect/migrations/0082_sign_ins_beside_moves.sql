-- What a person does who signs in is noted in the audit log of each of their tenants, in a transaction of no tenant: nothing
-- asked whether one of them is leaving. Such an entry had a move end, since both cells differed, or was lost when the tenant
-- departed.

-- An act of a person is noted where the tenant is here, or its hold is over. Elsewhere it is passed over: somebody signs in
-- whichever of their tenants is moving. The lock is the one of require_writable. Who has it alone keeps it for a moment; where
-- it does not come, nobody's sign-in waits for longer than that.
CREATE FUNCTION note_acts_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.tenant_id::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.tenant_id], '{}', '{}') f;
    IF said = 'here' OR (said = 'leaving' AND end_hold(NEW.tenant_id)) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
END $$;

-- What a tenant's own transaction writes is asked for when that ends.
CREATE TRIGGER acts_here BEFORE INSERT ON audit_log
    FOR EACH ROW WHEN (
        current_user = 'recollect_app' AND nullif(current_setting('recollect.tenant_id', true), '') IS NULL
    )
    EXECUTE FUNCTION note_acts_here();

REVOKE ALL ON FUNCTION note_acts_here() FROM PUBLIC;
