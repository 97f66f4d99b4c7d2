-- name: list_keys
-- All signing keys, the newest first.
SELECT id, fingerprint, public_key, private_key, created_at, clock_timestamp() AS read_at FROM list_signing_keys();

-- name: add_key
-- A new signing key, unless there is a young one of this secret.
SELECT add_signing_key(:id, :fingerprint, :public_key::jsonb, :private_key);
