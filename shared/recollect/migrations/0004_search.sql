-- What the classic searches read: entities and their statements, as they are or as they were, and the indexes for tags and
-- lengths.

-- The texts of an array one after the other. PostgreSQL's own array_to_string is not immutable, for the sake of types other
-- than text; an index needs it to be.
CREATE FUNCTION joined(texts text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
AS $$ SELECT array_to_string(texts, E'\n') $$;

CREATE INDEX nodes_tag_trigrams ON nodes USING gin (graph_id, joined(tags) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL AND tags <> '{}';
-- A fuzzy search looks at texts about as long as its query: of observations those are few, of names most. It begins with
-- the graph and leaves the tenant to the rows, as the GIN indexes do: without statistics PostgreSQL takes all indexes that
-- begin with the tenant for equally good, and would read a tenant's observations for each one that is looked up by its node.
CREATE INDEX observations_length ON observations (graph_id, length(lower(content)))
    WHERE removed_revision IS NULL;

-- The entities of a graph that are to be found: now (at_revision null), or as they were at a revision and its time.
-- It runs as its caller and the planner folds it into the query, where one branch falls away: what is searched now comes
-- through the search views and their indexes, the past under row-level security and without any.
CREATE FUNCTION entities_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    id uuid, name text, kind text, tags text[], importance double precision, created_at timestamptz, updated_at timestamptz
)
LANGUAGE sql STABLE
AS $$
    SELECT n.id, n.name, n.kind, n.tags, n.importance, n.created_at, n.updated_at
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
        AND NOT n.placeholder AND n.name IS NOT NULL AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    UNION ALL
    SELECT v.node_id, v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, h.created_at),
        changed_at(tenant, graph, v.node_id, v.created_at, at_revision)
    FROM nodes_at(tenant, graph, at_revision) v
    JOIN nodes h ON h.tenant_id = tenant AND h.id = v.node_id
    WHERE at_revision IS NOT NULL AND NOT v.placeholder AND v.name IS NOT NULL
        AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;

-- Their statements, likewise. Whether the entity itself is to be found is for the caller to look at.
CREATE FUNCTION statements_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (id uuid, node_id uuid, content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.id, o.node_id, o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.graph_id = graph AND o.removed_revision IS NULL
        AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp())
    UNION ALL
    SELECT o.id, o.node_id, o.content
    FROM observations_at(tenant, graph, at_revision) o
    WHERE at_revision IS NOT NULL AND (o.expires_at IS NULL OR o.expires_at > at_time)
$$;

-- One of those entities, and the statements of one. Matches are looked up by them, so that they must come by their one
-- right index. Without statistics PostgreSQL takes all indexes that begin with the tenant for equally good and may read the
-- whole graph for each match: hence the conditions here are such that no other index can serve.
CREATE FUNCTION entity_of(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (name text, kind text, tags text[], importance double precision, created_at timestamptz)
LANGUAGE sql STABLE
AS $$
    SELECT n.name, n.kind, n.tags, n.importance, n.created_at
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.id = node AND n.graph_id IS NOT DISTINCT FROM graph
        AND coalesce(n.removed_revision, 0) = 0 AND NOT n.placeholder AND n.name IS NOT NULL
        AND coalesce(n.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, h.created_at)
    FROM nodes_at(tenant, graph, at_revision) v
    JOIN nodes h ON h.tenant_id = tenant AND h.id = v.node_id
    WHERE at_revision IS NOT NULL AND v.node_id = node AND NOT v.placeholder AND v.name IS NOT NULL
        AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;

CREATE FUNCTION statements_about(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.node_id = node AND coalesce(o.removed_revision, 0) = 0
        AND coalesce(o.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT o.content
    FROM observations_at(tenant, graph, at_revision) o
    WHERE at_revision IS NOT NULL AND o.node_id = node AND (o.expires_at IS NULL OR o.expires_at > at_time)
$$;

REVOKE ALL ON FUNCTION joined(text[]), entities_of(uuid, uuid, bigint, timestamptz),
    statements_of(uuid, uuid, bigint, timestamptz), entity_of(uuid, uuid, uuid, bigint, timestamptz),
    statements_about(uuid, uuid, uuid, bigint, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION joined(text[]), entities_of(uuid, uuid, bigint, timestamptz),
    statements_of(uuid, uuid, bigint, timestamptz), entity_of(uuid, uuid, uuid, bigint, timestamptz),
    statements_about(uuid, uuid, uuid, bigint, timestamptz) TO recollect_app;
