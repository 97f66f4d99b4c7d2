-- The secret under which keys are hashed is replaced while both hold: each key is hashed anew when it is used.

-- Of which secret the hash is (a fingerprint, which tells nothing of it); null where that was not noted.
ALTER TABLE api_keys ADD COLUMN hashed_with bytea;

GRANT UPDATE (hash, hashed_with) ON api_keys TO recollect_app;
