-- Passkeys, by which people sign in without a password, and the challenges that are signed with them.

CREATE TABLE passkeys (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    credential_id bytea NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key bytea NOT NULL CHECK (octet_length(public_key) BETWEEN 1 AND 4000),
    sign_count bigint NOT NULL CHECK (sign_count >= 0),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id, id);

ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON passkeys
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
GRANT SELECT (id, person_id, credential_id, sign_count, name, created_at, last_used_at), INSERT,
    UPDATE (sign_count, name, last_used_at), DELETE ON passkeys TO recollect_app;

-- What a browser is asked to sign, once. browser: the keyed hash of its cookie. person_id: who adds a passkey by it; none
-- where somebody signs in.
CREATE TABLE passkey_challenges (
    challenge bytea PRIMARY KEY CHECK (octet_length(challenge) BETWEEN 16 AND 64),
    browser bytea NOT NULL CHECK (octet_length(browser) = 32),
    person_id uuid REFERENCES people (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenges_browser ON passkey_challenges (browser, expires_at);
CREATE INDEX passkey_challenges_end ON passkey_challenges (expires_at);
CREATE INDEX passkey_challenges_person ON passkey_challenges (person_id) WHERE person_id IS NOT NULL;
ALTER TABLE passkey_challenges ENABLE ROW LEVEL SECURITY;

-- Keep a challenge, of the person who has signed in or of nobody. Those that ended go, and those of the browser beyond its
-- five newest.
CREATE FUNCTION keep_passkey_challenge(new_challenge bytea, of_browser bytea, lifetime interval)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM passkey_challenges c
    WHERE c.challenge IN (
        SELECT o.challenge FROM passkey_challenges o WHERE o.expires_at < clock_timestamp()
        ORDER BY o.expires_at LIMIT 100
        FOR UPDATE SKIP LOCKED
    ) OR c.challenge IN (
        SELECT o.challenge FROM passkey_challenges o WHERE o.browser = of_browser ORDER BY o.expires_at DESC OFFSET 4
    );
    INSERT INTO passkey_challenges (challenge, browser, person_id, expires_at)
    VALUES (
        new_challenge, of_browser, nullif(current_setting('recollect.person_id', true), '')::uuid,
        clock_timestamp() + least(lifetime, interval '10 minutes')
    )
$$;

-- Use a challenge up, whatever comes of it; whether it held, for this browser and the person who has signed in, or nobody.
CREATE FUNCTION take_passkey_challenge(old_challenge bytea, of_browser bytea)
RETURNS TABLE (held boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM passkey_challenges c
    WHERE c.challenge = old_challenge AND c.browser = of_browser
        AND c.person_id IS NOT DISTINCT FROM nullif(current_setting('recollect.person_id', true), '')::uuid
    RETURNING c.expires_at > clock_timestamp()
$$;

-- A passkey by its credential's id, and whose it is: what a sign-in is verified with.
CREATE FUNCTION find_passkey(credential bytea)
RETURNS TABLE (id uuid, person_id uuid, public_key bytea, sign_count bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.person_id, k.public_key, k.sign_count FROM passkeys k WHERE k.credential_id = credential
$$;

REVOKE ALL ON FUNCTION keep_passkey_challenge(bytea, bytea, interval), take_passkey_challenge(bytea, bytea),
    find_passkey(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_passkey_challenge(bytea, bytea, interval), take_passkey_challenge(bytea, bytea),
    find_passkey(bytea) TO recollect_app;
