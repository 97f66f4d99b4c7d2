-- Usage: how often each tenant called what, by the hour (UTC). Gateways add to it in batches, workers with what they did.

-- kind: a tool, a resource, a route of the management API, or work of the worker. name: a word of the code, never a tenant's.
-- errors: calls that were answered by an error, or not at all. passages: given their vectors. bytes_received: of requests.
CREATE TABLE usage_hourly (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    hour timestamptz NOT NULL CHECK (mod(extract(epoch FROM hour), 3600) = 0),
    kind text NOT NULL CHECK (kind IN ('tool', 'resource', 'route', 'work')),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    calls bigint NOT NULL DEFAULT 0,
    errors bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    bytes_received bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, hour, kind, name)
) WITH (fillfactor = 50);  -- Rows of the running hour change every few seconds, in their own page.

ALTER TABLE usage_hourly ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON usage_hourly
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_hourly TO recollect_app;

-- Tenants with usage that is older than it is kept, ids only.
CREATE FUNCTION tenants_with_old_usage(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM usage_hourly u WHERE u.tenant_id = t.id AND u.hour < statement_timestamp() - kept
    )
$$;

REVOKE ALL ON FUNCTION tenants_with_old_usage(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_old_usage(interval) TO recollect_app;

-- A key may be confined to some toolsets; null is all. Whatever tells of a key by its hash tells them, too.
ALTER TABLE api_keys ADD COLUMN toolsets text[];
DROP FUNCTION find_api_key(bytea);
CREATE FUNCTION find_api_key(key_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, kind text, scopes text[], graph_ids uuid[],
    default_graph text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, toolsets text[]
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.tenant_id, t.slug, t.status, k.id, k.kind, k.scopes, k.graph_ids, g.name, k.expires_at, k.revoked_at,
        k.last_used_at, k.toolsets
    FROM api_keys k
    JOIN tenants t ON t.id = k.tenant_id
    LEFT JOIN graphs g ON g.tenant_id = k.tenant_id AND g.id = k.default_graph_id
    WHERE k.hash = key_hash
$$;
REVOKE ALL ON FUNCTION find_api_key(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key(bytea) TO recollect_app;
