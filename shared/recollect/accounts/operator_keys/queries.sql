-- fragment: key
-- A key as it is listed: OperatorKey.
id, name, hint, created_at, expires_at, revoked_at, last_used_at;

-- name: insert_operator_key
-- A new key.
INSERT INTO operator_keys (id, name, hash, hint, expires_at)
VALUES (:id, :name, :key_hash, :hint, clock_timestamp() + :lifetime::interval)
RETURNING -- include: key
;

-- name: list_operator_keys
-- Every key, oldest first.
SELECT -- include: key
FROM operator_keys ORDER BY id;

-- name: revoke_operator_key
-- Make a key void; one that is void keeps its first time.
UPDATE operator_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = :key_id
RETURNING -- include: key
;

-- name: count_hashed_keys
-- How many valid API keys of all tenants are hashed with a secret, and how many with another or an unknown one.
SELECT count(*) FILTER (WHERE hashed_with = :hashed_with) AS with_it,
    count(*) FILTER (WHERE hashed_with IS DISTINCT FROM :hashed_with) AS without_it
FROM api_keys
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: find_operator_key
-- The key with this keyed hash, which is noted as used.
SELECT id, name, expires_at, revoked_at, clock_timestamp() AS read_at FROM find_operator_key(:key_hash);

-- name: begin_operator_session
-- A new session of the holder of a key, by its keyed hash; returns when it ends.
SELECT begin_operator_session(:session_hash, :key_id);

-- name: find_operator_session
-- The key of the session with this keyed hash, while both are valid.
SELECT id, name FROM find_operator_session(:session_hash);

-- name: end_operator_session
-- End the session with this keyed hash.
SELECT end_operator_session(:session_hash);
