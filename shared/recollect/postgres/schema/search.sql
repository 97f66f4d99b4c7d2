-- What the classic searches read: entities and their statements, as they are or as they were.

-- The entities of a graph that are to be found: now (at_revision null), or as they were at a revision and its time.
-- It runs as its caller and the planner folds it into the query, where one branch falls away: what is searched now
-- comes through the search views and their indexes, the past under row-level security and without any.
CREATE FUNCTION entities_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    id uuid, name text, kind text, tags text[], importance double precision, created_at timestamptz, updated_at timestamptz,
    status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.id, n.name, n.kind, n.tags, n.importance, n.created_at, n.updated_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
        AND NOT n.placeholder AND n.name IS NOT NULL AND is_current(n.expires_at)
    UNION ALL
    SELECT v.node_id, v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, node_created_at(tenant, v.node_id)),
        changed_at(tenant, graph, v.node_id, v.created_at, at_revision), v.status
    FROM nodes_at(tenant, graph, at_revision) v
    WHERE at_revision IS NOT NULL AND NOT v.placeholder AND v.name IS NOT NULL AND is_current_at(v.expires_at, at_time)
$$;

-- Their statements, likewise, without what is outdated. Whether the entity itself is to be found is for the caller to
-- look at.
CREATE FUNCTION statements_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (id uuid, node_id uuid, content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.id, o.node_id, o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.graph_id = graph AND o.removed_revision IS NULL
        AND is_current(o.expires_at) AND o.status = 'active'
    UNION ALL
    SELECT o.id, o.node_id, o.content
    FROM observations_at(tenant, graph, at_revision) o
    WHERE at_revision IS NOT NULL AND is_current_at(o.expires_at, at_time) AND o.status = 'active'
$$;

-- One of those entities. Matches are looked up by it, so that they must come by their one right index. Without
-- statistics PostgreSQL takes all indexes that begin with the tenant for equally good and may read the whole graph
-- for each match: hence the conditions here are such that no other index can serve.
CREATE FUNCTION entity_of(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    name text, kind text, tags text[], importance double precision, created_at timestamptz, status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.name, n.kind, n.tags, n.importance, n.created_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.id = node AND n.graph_id IS NOT DISTINCT FROM graph
        AND is_live(n.removed_revision) AND NOT n.placeholder AND n.name IS NOT NULL
        AND coalesce(n.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, node_created_at(tenant, v.node_id)), v.status
    FROM version_at(tenant, node, at_revision) v
    WHERE at_revision IS NOT NULL AND v.graph_id = graph AND NOT v.placeholder AND v.name IS NOT NULL
        AND is_current_at(v.expires_at, at_time)
$$;

-- The statements of one entity. They are looked up by their node (ADR 32).
CREATE FUNCTION statements_about(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.content
    FROM (
        SELECT content, expires_at FROM search_observations
        WHERE at_revision IS NULL AND tenant_id = tenant AND same_key(node_id, node)
            AND is_live(removed_revision) AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS o
    WHERE coalesce(o.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT o.content
    FROM (
        SELECT content, graph_id, expires_at FROM observations
        WHERE at_revision IS NOT NULL AND tenant_id = tenant AND same_key(node_id, node)
            AND added_revision <= at_revision AND coalesce(removed_revision > at_revision, true) AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS o
    WHERE o.graph_id IS NOT DISTINCT FROM graph AND coalesce(o.expires_at > at_time, true)
$$;
