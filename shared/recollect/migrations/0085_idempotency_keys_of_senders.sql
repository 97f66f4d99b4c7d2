-- One credential must not use up the idempotency keys of its whole tenant, so each key stores which credential sent it.

-- A keyed hash of the tenant and the credential. NULL: the row was stored before this migration, or by a gateway of the
-- previous release; it counts for the tenant only, and expires within a day.
ALTER TABLE idempotency_keys ADD COLUMN sender_hash bytea CHECK (octet_length(sender_hash) = 32);

CREATE INDEX idempotency_keys_sender ON idempotency_keys (tenant_id, sender_hash) WHERE sender_hash IS NOT NULL;
