-- name: find_key
-- The row of a key that has not expired.
SELECT request_hash, rights_hash, created_at, answer, clock_timestamp() AS read_at FROM idempotency_keys
WHERE tenant_id = :tenant_id AND key_hash = :key_hash AND expires_at > clock_timestamp();

-- name: claim_key
-- Claim a key, unless it exists and has not expired, another request with it is in progress (held false), the tenant has
-- :most (tenant_has_room false), or the sender has :most_of_sender (sender_has_room false).
WITH locked AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(:lock) AS locked
), room AS MATERIALIZED (
    SELECT
        :most::bigint > (
            SELECT count(*) FROM (SELECT FROM idempotency_keys WHERE tenant_id = :tenant_id LIMIT :most::bigint) AS k
        ) AS tenant_has_room,
        :most_of_sender::bigint > (
            SELECT count(*) FROM (
                SELECT FROM idempotency_keys
                WHERE tenant_id = :tenant_id AND sender_hash = :sender_hash
                LIMIT :most_of_sender::bigint
            ) AS k
        ) AS sender_has_room
), claimed AS (
    INSERT INTO idempotency_keys AS k (tenant_id, key_hash, request_hash, rights_hash, sender_hash, expires_at)
    SELECT :tenant_id, :key_hash, :request_hash, :rights_hash, :sender_hash, clock_timestamp() + :retention::interval
    FROM locked, room WHERE locked AND tenant_has_room AND sender_has_room
    ON CONFLICT (tenant_id, key_hash) DO UPDATE
    SET request_hash = EXCLUDED.request_hash, rights_hash = EXCLUDED.rights_hash, sender_hash = EXCLUDED.sender_hash,
        created_at = clock_timestamp(), expires_at = EXCLUDED.expires_at, answer = NULL
    WHERE k.expires_at <= clock_timestamp()
    RETURNING 1
)
SELECT locked, tenant_has_room, sender_has_room, EXISTS (SELECT 1 FROM claimed) AS claimed FROM locked, room;

-- name: release_key
-- Delete a key whose act is not done after all.
DELETE FROM idempotency_keys WHERE tenant_id = :tenant_id AND key_hash = :key_hash AND request_hash = :request_hash;

-- name: save_answer
-- Store the answer to the request that claimed a key; or the mark that it is not stored, also where the answers of the
-- tenant would have more than :most bytes, or those of the sender more than :most_of_sender.
UPDATE idempotency_keys SET answer = (
    SELECT CASE WHEN stored + octet_length(:answer::bytea) <= :most::bigint
        AND stored_of_sender + octet_length(:answer::bytea) <= :most_of_sender::bigint THEN :answer ELSE ''::bytea END
    FROM (
        SELECT coalesce(sum(octet_length(o.answer)), 0) AS stored,
            coalesce(sum(octet_length(o.answer)) FILTER (WHERE o.sender_hash = :sender_hash), 0) AS stored_of_sender
        FROM idempotency_keys o WHERE o.tenant_id = :tenant_id
    ) AS s
)
WHERE tenant_id = :tenant_id AND key_hash = :key_hash AND request_hash = :request_hash AND answer IS NULL;

-- name: forget_answers
-- Delete all answers, present and future ones; the keys stay, which show that their acts are done.
UPDATE idempotency_keys SET answer = '' WHERE tenant_id = :tenant_id AND answer IS DISTINCT FROM '';

-- name: tenants_with_expired_keys
-- Active tenants with keys that have expired.
SELECT tenant_id FROM tenants_with_expired_idempotency_keys();

-- name: forget_expired
-- Delete keys that have expired, the oldest first: :limit at most. Returns their number.
WITH old AS (
    SELECT key_hash FROM idempotency_keys
    WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp()
    ORDER BY expires_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM idempotency_keys k USING old o WHERE k.tenant_id = :tenant_id AND k.key_hash = o.key_hash
    RETURNING 1
)
SELECT count(*) FROM deleted;
