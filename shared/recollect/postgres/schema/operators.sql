-- Operators: their keys, their log, deletions of tenants and receipts of erasures.
--
-- Tenants are deleted with grace. The role of the operator API sees tenants and plans, and nothing that a tenant
-- stored.

CREATE TABLE operator_keys (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    hash bytea NOT NULL UNIQUE,
    hint text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    last_used_at timestamptz
);

ALTER TABLE operator_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON operator_keys TO recollect_operator USING (true);

-- Sessions of operators at their pages, by the keyed hash of their secret. Nobody reads or writes the table but by the
-- three functions below, which the role of gateways and workers cannot call: it can neither make a session nor find one.
CREATE TABLE operator_sessions (
    hash bytea PRIMARY KEY,
    key_id uuid NOT NULL REFERENCES operator_keys (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL DEFAULT statement_timestamp() + interval '1 hour'
);
CREATE INDEX operator_sessions_of_key ON operator_sessions (key_id, expires_at);

ALTER TABLE operator_sessions ENABLE ROW LEVEL SECURITY;

-- What operators did. subject: what it was done to, as `kind:name`.
CREATE TABLE operator_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    action text NOT NULL CHECK (length(action) BETWEEN 1 AND 64),
    subject text NOT NULL CHECK (length(subject) BETWEEN 1 AND 300),
    address text CHECK (length(address) <= 100),
    trace_id text CHECK (length(trace_id) <= 32),
    details jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(details::text) <= 4000)
);
CREATE INDEX operator_log_subject ON operator_log (subject, id);

ALTER TABLE operator_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON operator_log TO recollect_operator USING (true);
GRANT SELECT, INSERT ON operator_log TO recollect_operator;

-- A tenant, by its id, that was deleted, and what has been erased of it: counts of rows by table.
CREATE TABLE tenant_deletions (
    id uuid PRIMARY KEY REFERENCES tenants (id),
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_by text NOT NULL CHECK (length(deleted_by) BETWEEN 1 AND 200),
    status_before text NOT NULL,
    read_only_before boolean NOT NULL,
    begun_at timestamptz,
    counts jsonb NOT NULL DEFAULT '{}'
);

ALTER TABLE tenant_deletions ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_deletions TO recollect_operator USING (true);
GRANT SELECT, INSERT, DELETE ON tenant_deletions TO recollect_operator;

-- What is left of a tenant that was erased: which it was, when and by whom, and how many rows of each table went.
-- `content` is JSON as it was written, and sha256 that of these bytes in hexadecimal digits.
CREATE TABLE erasure_receipts (
    id uuid PRIMARY KEY,
    number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    erased_at timestamptz NOT NULL,
    tenant uuid NOT NULL UNIQUE,
    slug text NOT NULL,
    content text NOT NULL,
    sha256 text NOT NULL CHECK (length(sha256) = 64)
);

ALTER TABLE erasure_receipts ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON erasure_receipts TO recollect_operator USING (true);
GRANT SELECT ON erasure_receipts TO recollect_operator;

CREATE FUNCTION keep_operator_record()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the log and the receipts of operators are append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

-- The operator's key with this keyed hash; it was used now, to the minute.
CREATE FUNCTION find_operator_key(key_hash bytea)
RETURNS TABLE (id uuid, name text, expires_at timestamptz, revoked_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    UPDATE operator_keys SET last_used_at = statement_timestamp()
    WHERE hash = key_hash AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute');
    SELECT k.id, k.name, k.expires_at, k.revoked_at FROM operator_keys k WHERE k.hash = key_hash
$$;

-- Begin a session for the holder of a key; returns when it ends, an hour later. What has ended goes, and of one key the
-- oldest beyond twenty.
CREATE FUNCTION begin_operator_session(session_hash bytea, holds uuid)
RETURNS timestamptz
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM operator_sessions s WHERE s.expires_at <= statement_timestamp() OR s.hash IN (
        SELECT o.hash FROM operator_sessions o WHERE o.key_id = holds ORDER BY o.expires_at DESC, o.hash OFFSET 19
    );
    INSERT INTO operator_sessions AS s (hash, key_id) VALUES (session_hash, holds) RETURNING s.expires_at
$$;

-- The key of a session, as long as both are valid.
CREATE FUNCTION find_operator_session(session_hash bytea)
RETURNS TABLE (id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.name FROM operator_sessions s JOIN operator_keys k ON k.id = s.key_id
    WHERE s.hash = session_hash AND s.expires_at > statement_timestamp()
        AND k.revoked_at IS NULL AND k.expires_at > statement_timestamp()
$$;

-- End a session.
CREATE FUNCTION end_operator_session(session_hash bytea)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM operator_sessions s WHERE s.hash = session_hash
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON operator_log FOR EACH ROW EXECUTE FUNCTION keep_operator_record();

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON erasure_receipts
    FOR EACH ROW EXECUTE FUNCTION keep_operator_record();
