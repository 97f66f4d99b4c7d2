-- Keys and invitations that hold no more go when a tenant has too many: for a new one, the oldest. The application may not
-- delete them otherwise: it has these two functions, which delete none that holds.

-- Delete the key of the transaction's tenant that has been void for the longest time; whether there was one.
CREATE FUNCTION forget_void_key()
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM api_keys k WHERE k.tenant_id = tenant AND k.id = (
        SELECT o.id FROM api_keys o
        WHERE o.tenant_id = tenant AND least(o.revoked_at, o.expires_at) <= clock_timestamp()
        ORDER BY least(o.revoked_at, o.expires_at), o.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    );
    RETURN FOUND;
END $$;

-- Delete the oldest invitation of the transaction's tenant that does not hold, of those that do not count among the mails of
-- a day; whether there was one.
CREATE FUNCTION forget_void_invitation()
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM invitations i WHERE i.tenant_id = tenant AND i.id = (
        SELECT o.id FROM invitations o
        WHERE o.tenant_id = tenant
            AND (o.accepted_at IS NOT NULL OR o.revoked_at IS NOT NULL OR o.expires_at <= clock_timestamp())
            AND (o.mailed_at IS NULL OR o.mailed_at <= clock_timestamp() - interval '24 hours')
        ORDER BY o.created_at, o.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    );
    RETURN FOUND;
END $$;

REVOKE ALL ON FUNCTION forget_void_key(), forget_void_invitation() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_void_key(), forget_void_invitation() TO recollect_app;
