-- What the person who has signed in lets clients do, in all tenants: what holds, the last used first. As the tenants' own
-- lists have it; the names of graphs come with it, and null is all.
CREATE FUNCTION list_own_grants(most bigint)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, role text, id uuid, client_id text, client_name text, scopes text[],
    graphs text[], toolsets text[], created_at timestamptz, last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, m.role, g.id, g.client_id, g.client_name, g.scopes,
        CASE WHEN g.graph_ids IS NOT NULL THEN ARRAY(
            SELECT x.name FROM graphs x WHERE x.tenant_id = g.tenant_id AND x.id = ANY (g.graph_ids) ORDER BY x.name
        ) END,
        g.toolsets, g.created_at, g.last_used_at
    FROM members m
    JOIN tenants t ON t.id = m.tenant_id
    JOIN oauth_grants g ON g.tenant_id = m.tenant_id AND g.person_id = m.person_id
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
        AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
    ORDER BY coalesce(g.last_used_at, g.created_at) DESC, g.id DESC
    LIMIT most
$$;

REVOKE ALL ON FUNCTION list_own_grants(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_own_grants(bigint) TO recollect_app;
