-- Links by which people who forgot their password take another one. Only the hash of each is kept.
CREATE TABLE password_resets (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX password_resets_person ON password_resets (person_id, created_at);

ALTER TABLE password_resets ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON password_resets
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
GRANT SELECT (id, person_id, created_at, expires_at), INSERT, DELETE ON password_resets TO recollect_app;

-- A link by the hash of its secret, and whose it is; whether it still holds is for the caller to judge.
CREATE FUNCTION find_password_reset(secret_hash bytea)
RETURNS TABLE (id uuid, person_id uuid, email text, name text, expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT r.id, r.person_id, p.email, p.name, r.expires_at
    FROM password_resets r JOIN people p ON p.id = r.person_id
    WHERE r.hash = secret_hash
$$;

REVOKE ALL ON FUNCTION find_password_reset(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_password_reset(bytea) TO recollect_app;
