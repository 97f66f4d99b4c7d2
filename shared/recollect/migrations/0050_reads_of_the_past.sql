-- Reads of the past look what belongs together up by its key. Without statistics of a tenant PostgreSQL expects a row or
-- two of it, takes every index that begins with the tenant for equally good, and compared all with all: a search of the past
-- of 2,000 entities took 16 seconds. A range of one key, in the order of the key, is for one index only.

-- The version that a node had at a revision; none where it was not there.
CREATE FUNCTION version_at(tenant uuid, node uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT * FROM (
        SELECT v.* FROM node_versions v
        WHERE v.tenant_id = tenant AND v.node_id BETWEEN node AND node AND v.added_revision <= at_revision
        ORDER BY v.node_id DESC, v.version DESC
        LIMIT 1
    ) AS newest
    WHERE NOT newest.deleted AND (newest.superseded_revision IS NULL OR newest.superseded_revision > at_revision)
$$;

-- When a node was first written; null where there is none.
CREATE FUNCTION node_created_at(tenant uuid, node uuid)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT n.created_at FROM nodes n WHERE n.tenant_id = tenant AND n.id BETWEEN node AND node ORDER BY n.id LIMIT 1
$$;

REVOKE ALL ON FUNCTION version_at(uuid, uuid, bigint), node_created_at(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION version_at(uuid, uuid, bigint), node_created_at(uuid, uuid) TO recollect_app;

-- As before, but for when a node was first written, which is looked up where a version does not say when its lineage began.
CREATE OR REPLACE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.last_dedup_at, v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision, v.created_at,
        v.created_by, coalesce(v.began_at, node_created_at(v.tenant_id, v.node_id)) AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts, v.reason
    FROM node_versions v;

-- As before, but for the second branch of each, and for the same.
CREATE OR REPLACE FUNCTION entities_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    id uuid, name text, kind text, tags text[], importance double precision, created_at timestamptz, updated_at timestamptz,
    status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.id, n.name, n.kind, n.tags, n.importance, n.created_at, n.updated_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
        AND NOT n.placeholder AND n.name IS NOT NULL AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    UNION ALL
    SELECT v.node_id, v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, node_created_at(tenant, v.node_id)),
        changed_at(tenant, graph, v.node_id, v.created_at, at_revision), v.status
    FROM nodes_at(tenant, graph, at_revision) v
    WHERE at_revision IS NOT NULL AND NOT v.placeholder AND v.name IS NOT NULL
        AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;
CREATE OR REPLACE FUNCTION entity_of(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    name text, kind text, tags text[], importance double precision, created_at timestamptz, status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.name, n.kind, n.tags, n.importance, n.created_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.id = node AND n.graph_id IS NOT DISTINCT FROM graph
        AND coalesce(n.removed_revision, 0) = 0 AND NOT n.placeholder AND n.name IS NOT NULL
        AND coalesce(n.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, node_created_at(tenant, v.node_id)), v.status
    FROM version_at(tenant, node, at_revision) v
    WHERE at_revision IS NOT NULL AND v.graph_id = graph AND NOT v.placeholder AND v.name IS NOT NULL
        AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;
CREATE OR REPLACE FUNCTION statements_about(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.node_id = node AND coalesce(o.removed_revision, 0) = 0
        AND coalesce(o.expires_at > statement_timestamp(), true) AND o.status = 'active'
    UNION ALL
    SELECT o.content
    FROM observations o
    WHERE at_revision IS NOT NULL AND o.tenant_id = tenant AND o.node_id = node AND o.graph_id IS NOT DISTINCT FROM graph
        AND o.added_revision <= at_revision AND coalesce(o.removed_revision > at_revision, true)
        AND coalesce(o.expires_at > at_time, true) AND o.status = 'active'
$$;
