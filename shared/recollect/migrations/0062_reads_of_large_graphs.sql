-- What lets a read of a large graph cost what it answers: pages are read from indexes alone, and edges are counted by a
-- plan that looks at each of them and at each node once.

-- A page of all nodes, and of all entities, in the order in which they are listed. What decides whether one is listed now
-- stands in the index, so that those before the page are passed over without a look at their rows.
CREATE INDEX nodes_listed ON nodes (tenant_id, graph_id, id) INCLUDE (expires_at)
    WHERE removed_revision IS NULL AND NOT placeholder;
CREATE INDEX nodes_entities ON nodes (tenant_id, graph_id, created_at, id) INCLUDE (expires_at, status)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL;

-- The edges that lead from a graph into others: few, of which nothing is remembered.
CREATE INDEX relations_symlinks_from ON relations (tenant_id, graph_id, id)
    WHERE removed_revision IS NULL AND to_graph <> graph_id;

-- How many live edges of each type a graph has between two of its own nodes that have names, whether or not these have
-- expired: its revision alone decides that. Nodes and edges are hashed (enable_nestloop): to look up both ends of each edge
-- takes five times as long, which a planner that expects few edges does not know.
CREATE FUNCTION edges_between_names(tenant uuid, graph uuid)
RETURNS TABLE (type text, edges bigint)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH /* relations.edges_between_names */ named AS MATERIALIZED (
        SELECT id FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
    )
    SELECT r.type, count(*)
    FROM relations r
    WHERE r.tenant_id = tenant AND r.graph_id = graph AND r.removed_revision IS NULL AND r.to_graph = graph
        AND r.from_node IN (SELECT id FROM named) AND r.to_node IN (SELECT id FROM named)
    GROUP BY r.type;
END $$;

REVOKE ALL ON FUNCTION edges_between_names(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION edges_between_names(uuid, uuid) TO recollect_app;
