-- A person's account is deleted, as the law on data protection asks: until now nothing removed a row of people, nor the address
-- from the invitations that were sent to it.

CREATE INDEX invitations_email ON invitations (email);

-- Delete the person who has signed in, with their sessions, passkeys, challenges and links for another password, and every
-- invitation of this cell to their address; whether there is nobody, a member still, or somebody who is gone by now. A copy of
-- somebody whose account is in another cell goes alike. Raises RC003 where a tenant of which they are a member, or which
-- invited them, is between two cells: its rows are in both. The lock is the one of require_writable.
CREATE FUNCTION delete_account()
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
    address text;
    tenant uuid;
BEGIN
    -- Whoever makes this person a member, or begins a session, waits for this, or this for them.
    SELECT p.email INTO address FROM people p WHERE p.id = me AND p.provider_tenant_id IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'nobody';
    ELSIF EXISTS (SELECT FROM members m JOIN tenants_here t ON t.id = m.tenant_id WHERE m.person_id = me) THEN
        RETURN 'member';
    END IF;
    FOR tenant IN
        SELECT m.tenant_id FROM members m WHERE m.person_id = me
        UNION SELECT i.tenant_id FROM invitations i WHERE i.email = address
        ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
        IF NOT end_hold(tenant) THEN
            RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
        END IF;
    END LOOP;
    DELETE FROM invitations i WHERE i.email = address;
    DELETE FROM people p WHERE p.id = me;
    RETURN 'gone';
END $$;

-- Whom a tenant's identity provider brought is a person of that tenant alone and has no account to delete: they go, with their
-- sessions, when they are a member no more, as who they are at the provider does. Whoever comes again is somebody new.
CREATE FUNCTION forget_brought_person()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
BEGIN
    DELETE FROM people p WHERE p.id = OLD.person_id AND p.provider_tenant_id = OLD.tenant_id;
    RETURN NULL;
END $$;
CREATE TRIGGER brought_people AFTER DELETE ON members FOR EACH ROW EXECUTE FUNCTION forget_brought_person();

-- Those who are none since before; of a tenant that is moving, those who are not served here may be members elsewhere.
DELETE FROM people p USING tenants_here t
WHERE t.id = p.provider_tenant_id AND NOT EXISTS (SELECT FROM members m WHERE m.person_id = p.id);

REVOKE ALL ON FUNCTION delete_account(), forget_brought_person() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_account() TO recollect_app;
