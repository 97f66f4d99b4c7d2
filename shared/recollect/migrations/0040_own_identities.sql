-- People disconnect what they are at an identity provider from their account.

-- What the person who has signed in is at providers, in all tenants of which they are a member. `enabled`: whether they can
-- sign in by it.
CREATE FUNCTION list_own_identities(most bigint)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, provider_id uuid, provider_name text, enabled boolean,
    last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, i.id, i.name, i.disabled_at IS NULL AND t.status = 'active', x.last_used_at
    FROM members m
    JOIN tenants t ON t.id = m.tenant_id
    JOIN provider_identities x ON x.tenant_id = m.tenant_id AND x.person_id = m.person_id
    JOIN identity_providers i ON i.tenant_id = x.tenant_id AND i.id = x.provider_id
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
    ORDER BY t.slug, i.name, i.id
    LIMIT most
$$;

REVOKE ALL ON FUNCTION list_own_identities(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_own_identities(bigint) TO recollect_app;

-- Sessions that a provider began end with the identity by which they began.
GRANT SELECT (provider_id) ON sessions TO recollect_app;
