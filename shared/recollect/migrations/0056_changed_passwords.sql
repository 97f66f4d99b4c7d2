-- When a person took another password, which ends the sessions that identity providers began in other cells. One of those may
-- not be reached then, or be on its way to another cell: whoever moves a tenant ends what began before.

ALTER TABLE people ADD COLUMN password_changed_at timestamptz;

CREATE FUNCTION note_changed_password()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.password_changed_at := clock_timestamp();
    RETURN NEW;
END $$;
CREATE TRIGGER changed_password BEFORE UPDATE OF password_hash ON people
    FOR EACH ROW WHEN (NEW.password_hash IS DISTINCT FROM OLD.password_hash) EXECUTE FUNCTION note_changed_password();

REVOKE ALL ON FUNCTION note_changed_password() FROM PUBLIC;
