-- Plans: what a tenant may have and ask for. Null is no limit.

-- nodes_per_graph: entities, facts and placeholders. stored_bytes: of text, history included. embeddings_per_day: passages
-- that are given vectors from one midnight UTC to the next. concurrent_calls: under way at the same time.
CREATE TABLE plans (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    graphs bigint CHECK (graphs > 0),
    nodes_per_graph bigint CHECK (nodes_per_graph > 0),
    observations bigint CHECK (observations > 0),
    stored_bytes bigint CHECK (stored_bytes > 0),
    embeddings_per_day bigint CHECK (embeddings_per_day > 0),
    requests_per_minute bigint CHECK (requests_per_minute > 0),
    key_requests_per_minute bigint CHECK (key_requests_per_minute > 0),
    concurrent_calls bigint CHECK (concurrent_calls > 0)
);
INSERT INTO plans (name, graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day, requests_per_minute,
    key_requests_per_minute, concurrent_calls)
VALUES ('unlimited', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    ('free', 10, 10000, 100000, 100000000, 50000, 600, 300, 10),
    ('team', 100, 100000, 2000000, 2000000000, 500000, 3000, 1500, 30),
    ('business', 1000, 1000000, 20000000, 20000000000, 5000000, 12000, 6000, 100);

-- squawk-ignore adding-foreign-key-constraint -- a row for each tenant: looked through in a moment
ALTER TABLE tenants ADD COLUMN plan text NOT NULL DEFAULT 'unlimited' REFERENCES plans (name);

-- A tenant sees the plan that it has. Which others there are, and what is in them, is the operator's.
ALTER TABLE plans ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_plan ON plans
    USING (name = (SELECT t.plan FROM tenants t
        WHERE t.id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)));
GRANT SELECT ON plans TO recollect_app;

-- A key may have a lower limit than the plan gives to each. Whatever tells of a key by its hash tells what its calls may be.
ALTER TABLE api_keys ADD COLUMN requests_per_minute bigint CHECK (requests_per_minute > 0);
-- squawk-ignore ban-drop-function -- Recollect alone calls it
DROP FUNCTION find_api_key(bytea);
CREATE FUNCTION find_api_key(key_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, kind text, scopes text[], graph_ids uuid[],
    default_graph text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, toolsets text[],
    plan text, requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.tenant_id, t.slug, t.status, k.id, k.kind, k.scopes, k.graph_ids, g.name, k.expires_at, k.revoked_at,
        k.last_used_at, k.toolsets, p.name, p.requests_per_minute,
        least(k.requests_per_minute, p.key_requests_per_minute), p.concurrent_calls
    FROM api_keys k
    JOIN tenants t ON t.id = k.tenant_id
    JOIN plans p ON p.name = t.plan
    LEFT JOIN graphs g ON g.tenant_id = k.tenant_id AND g.id = k.default_graph_id
    WHERE k.hash = key_hash
$$;
REVOKE ALL ON FUNCTION find_api_key(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key(bytea) TO recollect_app;
