-- Whether a session began before its person took another password is counted: the clocks of two servers may differ. Home
-- counts the passwords of a person, and a session that an identity provider began says how many there had been.

ALTER TABLE people ADD COLUMN password_changes bigint NOT NULL DEFAULT 0;
GRANT SELECT (password_changes) ON people TO recollect_app;

-- Null: it began before this was counted, or where all is in one cell; or the person has no account at home.
ALTER TABLE sessions ADD COLUMN password_changes bigint;

-- As before, and counts.
CREATE OR REPLACE FUNCTION note_changed_password()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.password_changed_at := clock_timestamp();
    NEW.password_changes := OLD.password_changes + 1;
    RETURN NEW;
END $$;
