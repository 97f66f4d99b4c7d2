-- name: keep_challenge
-- Store the challenge that a browser is to sign, for the person who has signed in or for nobody.
SELECT keep_passkey_challenge(:challenge, :browser, :lifetime);

-- name: take_challenge
-- Use a challenge up; return whether it was valid for this browser. No row if it does not exist.
SELECT held FROM take_passkey_challenge(:challenge, :browser);

-- name: find_passkey
-- The passkey with this credential, of any person; read before a person is known.
SELECT id, person_id, public_key, sign_count, confined_to FROM find_passkey(:credential_id);

-- name: insert_passkey
-- Store a passkey; no row if the credential is registered, or the person has :most.
INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, name)
SELECT :id, :person_id, :credential_id, :public_key, :sign_count, :name
WHERE :most::bigint > (SELECT count(*) FROM passkeys k WHERE k.person_id = :person_id)
ON CONFLICT (credential_id) DO NOTHING
RETURNING id, name, created_at, last_used_at;

-- name: list_passkeys
-- A person's passkeys, oldest first.
SELECT id, name, created_at, last_used_at FROM passkeys WHERE person_id = :person_id ORDER BY id LIMIT :limit;

-- name: list_credentials
-- The credentials of a person's passkeys.
SELECT credential_id FROM passkeys WHERE person_id = :person_id ORDER BY id LIMIT :limit;

-- name: note_use
-- Note that a passkey was used; no row if a concurrent sign-in used it.
UPDATE passkeys SET sign_count = :sign_count, last_used_at = clock_timestamp()
WHERE person_id = :person_id AND id = :id AND sign_count = :was
RETURNING id;

-- name: rename_passkey
-- Rename a passkey.
UPDATE passkeys SET name = :name WHERE person_id = :person_id AND id = :id RETURNING id;

-- name: delete_passkey
-- Delete a passkey.
DELETE FROM passkeys WHERE person_id = :person_id AND id = :id RETURNING id;
