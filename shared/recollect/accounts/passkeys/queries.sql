-- name: keep_challenge
-- Keep what a browser is asked to sign, of the person who has signed in or of nobody.
SELECT keep_passkey_challenge(:challenge, :browser, :lifetime);

-- name: take_challenge
-- Use a challenge up; whether it held for this browser. No row where there is none.
SELECT held FROM take_passkey_challenge(:challenge, :browser);

-- name: find_passkey
-- The passkey with this credential, of anybody; asked before anybody is known.
SELECT id, person_id, public_key, sign_count FROM find_passkey(:credential_id);

-- name: insert_passkey
-- A new passkey; nothing where the credential is registered, or the person has :most.
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
-- A passkey was used; nothing where it was used meanwhile by somebody else.
UPDATE passkeys SET sign_count = :sign_count, last_used_at = clock_timestamp()
WHERE person_id = :person_id AND id = :id AND sign_count = :was
RETURNING id;

-- name: rename_passkey
-- Another name.
UPDATE passkeys SET name = :name WHERE person_id = :person_id AND id = :id RETURNING id;

-- name: delete_passkey
-- One passkey less.
DELETE FROM passkeys WHERE person_id = :person_id AND id = :id RETURNING id;
