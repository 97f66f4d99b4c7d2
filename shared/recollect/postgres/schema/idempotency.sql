-- Idempotency keys: the answers to calls that may be repeated.
--
-- One credential must not use up the keys of its whole tenant, so each key stores which credential sent it.

-- key_hash, request_hash, rights_hash: keyed hashes of the key with whose it is, of the request, and of what its
-- sender may. answer: encrypted; null as long as there is none, empty where it is not kept. A row is inserted in the
-- transaction of the act: where there is a row, the act is done.
CREATE TABLE idempotency_keys (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    key_hash bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
    rights_hash bytea NOT NULL CHECK (octet_length(rights_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    answer bytea,
    -- A keyed hash of the tenant and the credential.
    sender_hash bytea NOT NULL CHECK (octet_length(sender_hash) = 32),
    PRIMARY KEY (tenant_id, key_hash)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (tenant_id, expires_at);
CREATE INDEX idempotency_keys_sender ON idempotency_keys (tenant_id, sender_hash) WHERE sender_hash IS NOT NULL;

ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON idempotency_keys
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO recollect_app;
