-- fragment: these
-- The nodes :node_ids, each once.
SELECT DISTINCT id FROM unnest(:node_ids::uuid[]) AS given (id)

-- fragment: starting
-- The live edges that start at the node ends.id: the range of one id in its order is read by an index of ids.
SELECT * FROM relations
WHERE tenant_id = :tenant_id AND same_key(from_node, ends.id) AND removed_revision IS NULL
ORDER BY from_node OFFSET 0

-- fragment: ending
-- The live edges that end at the node ends.id, read in the same way.
SELECT * FROM relations
WHERE tenant_id = :tenant_id AND same_key(to_node, ends.id) AND removed_revision IS NULL
ORDER BY to_node OFFSET 0

-- fragment: starting_at
-- The edges of the graph that started at the node ends.id at a revision, with their lasting ids (not those of old versions).
SELECT coalesce(version_of, id) AS id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at,
    created_by, updated_at
FROM relations
WHERE tenant_id = :tenant_id AND same_key(from_node, ends.id) AND as_filter(graph_id = :graph_id)
    AND added_revision <= :as_of_revision AND is_live_at(removed_revision, :as_of_revision)
ORDER BY from_node OFFSET 0

-- fragment: ending_at
-- The edges of the graph that ended at the node ends.id at a revision, with their lasting ids: those that are still live, and
-- those that are not.
(SELECT coalesce(version_of, id) AS id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at,
    created_by, updated_at
FROM relations
WHERE tenant_id = :tenant_id AND same_key(to_node, ends.id) AND as_filter(graph_id = :graph_id)
    AND added_revision <= :as_of_revision AND removed_revision IS NULL
ORDER BY to_node OFFSET 0)
UNION ALL
(SELECT coalesce(version_of, id), graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at,
    created_by, updated_at
FROM relations
WHERE tenant_id = :tenant_id AND same_key(to_node, ends.id) AND as_filter(graph_id = :graph_id)
    AND added_revision <= :as_of_revision AND removed_revision IS NOT NULL AND removed_revision > :as_of_revision
ORDER BY to_node OFFSET 0)

-- fragment: ends
-- The nodes at both ends of an edge, each looked up by its id: source and target.
CROSS JOIN LATERAL (SELECT * FROM nodes WHERE tenant_id = :tenant_id AND id = edge.from_node LIMIT 1) AS source
CROSS JOIN LATERAL (SELECT * FROM nodes WHERE tenant_id = :tenant_id AND id = edge.to_node LIMIT 1) AS target;

-- fragment: named
-- Whether both ends live and have names.
coalesce(source.removed_revision, target.removed_revision) IS NULL AND source.name || target.name IS NOT NULL
    AND coalesce(least(source.expires_at, target.expires_at) > statement_timestamp(), true);

-- fragment: reached
-- Whether an edge stays in its graph, or leads into one of the graphs :reachable_graphs (null: any). A caller with an
-- allow-list must not learn the names of nodes in other graphs.
(edge.to_graph = edge.graph_id OR :reachable_graphs::uuid[] IS NULL OR edge.to_graph = ANY (:reachable_graphs))

-- name: remove_relations
-- Remove edges by their ends and type. Each is looked up first, as by find_edges, and removed by its id: in an update, the
-- planner alone would choose the index.
UPDATE relations r SET removed_revision = :revision
WHERE r.tenant_id = :tenant_id AND is_live(r.removed_revision) AND r.id = ANY (ARRAY(
    SELECT e.id
    FROM unnest(:from_nodes::uuid[], :to_nodes::uuid[], :types::text[]) AS i (from_node, to_node, type)
    CROSS JOIN LATERAL (
        SELECT id FROM relations
        WHERE tenant_id = :tenant_id AND from_node = i.from_node AND removed_revision IS NULL
            AND (type, to_node) >= (i.type, i.to_node) AND (type, to_node) <= (i.type, i.to_node)
        ORDER BY type, to_node LIMIT 1
    ) AS e
))
RETURNING r.id, r.from_node, r.to_node, r.type;

-- name: remove_touching
-- Remove every edge of this graph with an end among these nodes. An edge from another graph stays and dangles.
UPDATE relations r SET removed_revision = :revision
WHERE r.tenant_id = :tenant_id AND as_filter(r.graph_id = :graph_id) AND is_live(r.removed_revision)
    AND r.id = ANY (ARRAY(
        SELECT e.id FROM unnest(:node_ids::uuid[]) AS i (id)
        CROSS JOIN LATERAL (
            (SELECT id FROM relations
            WHERE tenant_id = :tenant_id AND same_key(from_node, i.id) AND removed_revision IS NULL
            ORDER BY from_node OFFSET 0)
            UNION ALL
            (SELECT id FROM relations
            WHERE tenant_id = :tenant_id AND same_key(to_node, i.id) AND removed_revision IS NULL
            ORDER BY to_node OFFSET 0)
        ) AS e
    ))
RETURNING r.id, r.from_node, r.to_node, r.type;

-- name: find_orphaned_placeholders
-- Those of these nodes of a graph that are placeholders without an edge in it. An edge from another graph does not count:
-- it dangles, as it does when an entity is deleted. Edges are looked up node by node, by a range of one id, in order, which
-- only an index of that end provides. A planner that expects a tenant to have almost no rows would take any index of the
-- tenant's, and read every edge for every node (2,000 nodes: 15 s). NOT EXISTS would drop order and limit.
SELECT n.id FROM nodes n
WHERE n.tenant_id = :tenant_id AND as_filter(n.graph_id = :graph_id) AND n.id = ANY (:node_ids::uuid[]) AND n.placeholder
    AND n.removed_revision IS NULL AND (
        SELECT r.id FROM relations r
        WHERE r.tenant_id = :tenant_id AND same_key(r.from_node, n.id) AND r.removed_revision IS NULL
        ORDER BY r.from_node, r.type
        LIMIT 1
    ) IS NULL AND (
        SELECT r.id FROM relations r
        WHERE r.tenant_id = :tenant_id AND same_key(r.to_node, n.id) AND r.removed_revision IS NULL
            AND as_filter(r.graph_id = :graph_id)
        ORDER BY r.to_node
        LIMIT 1
    ) IS NULL;

-- name: relations_touching
-- plan: once from here
-- Edges of a graph with an end among these nodes, oldest first; both ends live and have names. At most :limit. Here and
-- below, LIMIT has each end looked up by its key: a planner that expects a tenant to have almost no rows would compare
-- every edge with every node (11,000 edges: 30 s). as_filter keeps it from reading every edge of the graph (ADR 32).
WITH ends AS (
    -- include: these
)
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM (
    SELECT edge.id, edge.graph_id, edge.from_node, edge.to_graph, edge.to_node, edge.type, edge.created_at,
        edge.updated_at
    FROM ends
    CROSS JOIN LATERAL (
        -- include: starting
    ) AS edge
    UNION
    SELECT edge.id, edge.graph_id, edge.from_node, edge.to_graph, edge.to_node, edge.type, edge.created_at,
        edge.updated_at
    FROM ends
    CROSS JOIN LATERAL (
        -- include: ending
    ) AS edge
) AS edge
-- include: ends
WHERE as_filter(edge.graph_id = :graph_id) AND -- include: reached
    AND -- include: named
ORDER BY edge.created_at, edge.id
LIMIT :limit;

-- name: relations_between
-- Edges with both ends among these nodes, oldest first, looked up by their sources.
WITH ends AS (
    -- include: these
)
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM ends
CROSS JOIN LATERAL (
    -- include: starting
) AS edge
-- include: ends
WHERE edge.to_node = ANY (:node_ids::uuid[]) AND -- include: named
ORDER BY edge.created_at, edge.id
LIMIT :limit;

-- name: list_relations
-- Every edge of a graph whose ends have names, oldest first.
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM relations edge
-- include: ends
WHERE edge.tenant_id = :tenant_id AND edge.graph_id = :graph_id AND edge.removed_revision IS NULL AND -- include: reached
    AND -- include: named
ORDER BY edge.id
OFFSET :offset
LIMIT :limit;

-- name: relations_touching_at
-- plan: once from here
-- Edges of a graph with an end among these nodes as they were at a revision (:as_of_revision) and its time (:as_of_time),
-- oldest first; both ends had names. At most :limit.
WITH ends AS (
    -- include: these
)
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM (
    SELECT edge.id, edge.graph_id, edge.from_node, edge.to_graph, edge.to_node, edge.type, edge.created_at,
        edge.updated_at
    FROM ends
    CROSS JOIN LATERAL (
        -- include: starting_at
    ) AS edge
    UNION
    SELECT edge.id, edge.graph_id, edge.from_node, edge.to_graph, edge.to_node, edge.type, edge.created_at,
        edge.updated_at
    FROM ends
    CROSS JOIN LATERAL (
        -- include: ending_at
    ) AS edge
) AS edge
JOIN LATERAL node_at(:tenant_id, edge.from_node, :as_of_time) source ON source.name IS NOT NULL
JOIN LATERAL node_at(:tenant_id, edge.to_node, :as_of_time) target ON target.name IS NOT NULL
WHERE -- include: reached
ORDER BY edge.created_at, edge.id
LIMIT :limit;

-- name: relations_between_at
-- Edges with both ends among these nodes as they were at a revision and its time :as_of_time, oldest first. At most
-- :limit.
WITH ends AS (
    -- include: these
)
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM ends
CROSS JOIN LATERAL (
    -- include: starting_at
) AS edge
JOIN LATERAL node_at(:tenant_id, edge.from_node, :as_of_time) source ON source.name IS NOT NULL
JOIN LATERAL node_at(:tenant_id, edge.to_node, :as_of_time) target ON target.name IS NOT NULL
WHERE edge.to_node = ANY (:node_ids::uuid[])
ORDER BY edge.created_at, edge.id
LIMIT :limit;

-- name: list_relations_at
-- Every edge that a graph had at a revision (:as_of_revision) and its time (:as_of_time) and whose ends had names, oldest
-- first.
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM relations_at(:tenant_id, :graph_id, :as_of_revision) edge
JOIN LATERAL node_at(:tenant_id, edge.from_node, :as_of_time) source ON source.name IS NOT NULL
JOIN LATERAL node_at(:tenant_id, edge.to_node, :as_of_time) target ON target.name IS NOT NULL
WHERE -- include: reached
ORDER BY edge.id
OFFSET :offset
LIMIT :limit;

-- name: insert_edges
-- New edges between nodes; an edge that exists is skipped. The revisions of an edge alone decide in which states of the graph
-- it is seen; its creation time is for readers, and may be earlier.
INSERT INTO relations AS r (tenant_id, graph_id, id, from_node, to_graph, to_node, type, metadata, ordinal,
    added_revision, created_at, created_by)
SELECT :tenant_id, :graph_id, i.id, i.from_node, i.to_graph, i.to_node, i.type, i.metadata, i.ordinal, :revision,
    coalesce(least(i.created_at, :revision_time), :revision_time), coalesce(i.actor, :subject)
FROM jsonb_to_recordset(:edges::jsonb) AS i (id uuid, from_node uuid, to_graph uuid, to_node uuid, type text,
    metadata jsonb, ordinal integer, created_at timestamptz, actor text)
ON CONFLICT (tenant_id, from_node, type, to_node) WHERE removed_revision IS NULL DO NOTHING
RETURNING r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at;

-- name: find_edges
-- Live edges by their ends and type. Only the index of all three has the edges of an origin in the order of type and target:
-- by another, all edges at one of the ends would be read for each that is looked up.
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at
FROM unnest(:from_nodes::uuid[], :to_nodes::uuid[], :types::text[]) AS i (from_node, to_node, type)
CROSS JOIN LATERAL (
    SELECT * FROM relations
    WHERE tenant_id = :tenant_id AND from_node = i.from_node AND removed_revision IS NULL
        AND (type, to_node) >= (i.type, i.to_node) AND (type, to_node) <= (i.type, i.to_node)
    ORDER BY type, to_node LIMIT 1
) AS r;

-- name: edges_by_id
-- Live edges of a graph in the order of :edge_ids.
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at
FROM unnest(:edge_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
JOIN relations r ON r.tenant_id = :tenant_id AND r.graph_id = :graph_id AND r.id = wanted.id
    AND r.removed_revision IS NULL
ORDER BY wanted.position;

-- name: edges_by_id_at
-- The same as they were at a revision (:as_of_revision).
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at
FROM unnest(:edge_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
JOIN relations_at(:tenant_id, :graph_id, :as_of_revision) r ON r.id = wanted.id
ORDER BY wanted.position;

-- name: rewrite_edges
-- Give live edges of this graph other properties, where these differ. The edges keep their ids. Their former properties
-- stay as former versions, unless this same revision wrote them. Each edge is looked up by its id (ADR 32).
WITH given AS MATERIALIZED (
    SELECT i.*, r.version
    FROM jsonb_to_recordset(:edges::jsonb) AS i (id uuid, former uuid, metadata jsonb, ordinal integer)
    CROSS JOIN LATERAL (
        SELECT e AS version FROM relations e
        WHERE e.tenant_id = :tenant_id AND same_key(e.id, i.id) ORDER BY e.id LIMIT 1
    ) AS r
    WHERE (r.version).graph_id = :graph_id AND (r.version).removed_revision IS NULL
        AND ((r.version).metadata, (r.version).ordinal) IS DISTINCT FROM (i.metadata, i.ordinal)
), kept AS (
    INSERT INTO relations (tenant_id, graph_id, id, version_of, from_node, to_graph, to_node, type, metadata, ordinal,
        added_revision, removed_revision, created_at, updated_at, created_by)
    SELECT r.tenant_id, r.graph_id, i.former, r.id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal,
        r.added_revision, :revision, r.created_at, r.updated_at, r.created_by
    FROM given i
    CROSS JOIN LATERAL (SELECT (i.version).*) AS r
    WHERE r.added_revision < :revision
)
UPDATE relations r SET metadata = i.metadata, ordinal = i.ordinal, added_revision = :revision, updated_at = :revision_time
FROM given i
WHERE r.tenant_id = :tenant_id AND r.id = ANY (ARRAY(SELECT id FROM given)) AND r.id = i.id
RETURNING r.id;

-- name: remove_edges
-- Remove edges of this graph by id.
UPDATE relations SET removed_revision = :revision
WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:edge_ids::uuid[])
    AND is_live(removed_revision)
RETURNING id, from_node, to_node, type;

-- name: edges_between
-- Live edges of this graph from one node to another, of the type :type (null: any).
SELECT id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at, created_by,
    coalesce(updated_at, created_at) AS updated_at
FROM relations
WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND same_key(from_node, :from_node)
    AND to_node = :to_node AND removed_revision IS NULL
    AND (:type::text IS NULL OR type = :type)
ORDER BY from_node, type;

-- fragment: behind
-- Whether an edge comes after the edge :after_id with :after_ordinal, in the order of ordinal and age; null: always.
(:after_id::uuid IS NULL OR (coalesce(ordinal, 2147483648), id)
    > (coalesce(:after_ordinal::bigint, 2147483648), :after_id));

-- name: edges_of
-- plan: once from here
-- Live edges that start (:outgoing) or end (:incoming) at one of these nodes, in the order of ordinal and age; at most
-- :limit after :offset, after the edge :after_id with :after_ordinal, where that is not null. :types: only these types;
-- empty: any. :within: only edges with both ends in these graphs and a live target; null: any. Their metadata is not
-- fetched. The edges of each node are looked up by its id (ADR 32).
WITH ends AS (
    -- include: these
)
SELECT id, graph_id, from_node, to_graph, to_node, type, '{}'::jsonb AS metadata, ordinal, created_at, created_by,
    coalesce(updated_at, created_at) AS updated_at
FROM (
    SELECT edge.* FROM ends
    CROSS JOIN LATERAL (
        -- include: starting
    ) AS edge
    WHERE :outgoing
    UNION ALL
    SELECT edge.* FROM ends
    CROSS JOIN LATERAL (
        -- include: ending
    ) AS edge
    WHERE :incoming AND NOT (:outgoing AND edge.from_node = ANY (:node_ids::uuid[]))
) AS edge
WHERE (cardinality(:types::text[]) = 0 OR type = ANY (:types)) AND -- include: behind
    AND (:within::uuid[] IS NULL OR (
        graph_id = ANY (:within) AND to_graph = ANY (:within) AND (to_graph = graph_id OR EXISTS (
            SELECT 1 FROM nodes target WHERE target.tenant_id = :tenant_id AND target.id = to_node
                AND target.removed_revision IS NULL))))
    AND from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
    AND to_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
ORDER BY ordinal NULLS LAST, id
OFFSET :offset
LIMIT :limit;

-- fragment: expired_at
-- The nodes of the graph that had expired at a revision and its time: few, found by the index on expires_at.
SELECT expiring.node_id FROM (
    SELECT node_id, version FROM node_versions
    WHERE tenant_id = :tenant_id AND expires_at <= :as_of_time AND as_filter(graph_id = :graph_id)
        AND added_revision <= :as_of_revision AND coalesce(superseded_revision > :as_of_revision, true) AND NOT deleted
    ORDER BY expires_at OFFSET 0
) AS expiring
CROSS JOIN LATERAL (
    SELECT version, graph_id FROM version_at(:tenant_id, expiring.node_id, :as_of_revision) OFFSET 0
) AS version
WHERE version.version = expiring.version AND version.graph_id = :graph_id

-- name: edges_of_at
-- plan: once from here
-- The same as it was at a revision (:as_of_revision) of a graph (:graph_id) and its time :as_of_time.
WITH ends AS (
    -- include: these
)
SELECT id, graph_id, from_node, to_graph, to_node, type, '{}'::jsonb AS metadata, ordinal, created_at, created_by,
    coalesce(updated_at, created_at) AS updated_at
FROM (
    SELECT edge.* FROM ends
    CROSS JOIN LATERAL (
        -- include: starting_at
    ) AS edge
    WHERE :outgoing
    UNION ALL
    SELECT edge.* FROM ends
    CROSS JOIN LATERAL (
        -- include: ending_at
    ) AS edge
    WHERE :incoming AND NOT (:outgoing AND edge.from_node = ANY (:node_ids::uuid[]))
) AS edge
WHERE (cardinality(:types::text[]) = 0 OR type = ANY (:types)) AND -- include: behind
    AND (:within::uuid[] IS NULL OR graph_id = ANY (:within) AND to_graph = ANY (:within))
    AND from_node NOT IN (
        -- include: expired_at
    )
    AND to_node NOT IN (
        -- include: expired_at
    )
ORDER BY ordinal NULLS LAST, id
OFFSET :offset
LIMIT :limit;

-- name: measure_edges_of
-- How many live edges start or end at one of these nodes, of :limit at most, and the bytes of their metadata.
SELECT count(*) AS count, coalesce(sum(octet_length(edge.metadata::text)), 0)::bigint AS bytes
FROM (
    SELECT edge.metadata FROM (
        -- include: these
    ) AS ends
    CROSS JOIN LATERAL (
        (
            -- include: starting
        )
        UNION ALL
        (
            -- include: ending
        )
    ) AS edge
    LIMIT :limit
) AS edge;

-- name: measure_edges
-- The live edges with these ends and types, and the bytes of their metadata; looked up as by find_edges.
SELECT i.position, octet_length(r.metadata::text) AS bytes
FROM unnest(:from_nodes::uuid[], :to_nodes::uuid[], :types::text[]) WITH ORDINALITY AS i (from_node, to_node, type, position)
CROSS JOIN LATERAL (
    SELECT metadata FROM relations
    WHERE tenant_id = :tenant_id AND from_node = i.from_node AND removed_revision IS NULL
        AND (type, to_node) >= (i.type, i.to_node) AND (type, to_node) <= (i.type, i.to_node)
    ORDER BY type, to_node LIMIT 1
) AS r;

-- name: metadata_of_edges
-- The metadata of live edges, with their size in bytes, in the order of :edge_ids: a reader stops where it has enough.
SELECT wanted.id, r.metadata, octet_length(r.metadata::text) AS bytes
FROM unnest(:edge_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN LATERAL (
    SELECT metadata, removed_revision FROM relations
    WHERE tenant_id = :tenant_id AND same_key(id, wanted.id) ORDER BY id LIMIT 1
) AS r
WHERE r.removed_revision IS NULL
ORDER BY wanted.position;

-- name: metadata_of_edges_at
-- The same as it was at a revision: that of the edge itself, or of a former version of it.
SELECT wanted.id, r.metadata, octet_length(r.metadata::text) AS bytes
FROM unnest(:edge_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN LATERAL (
    SELECT metadata FROM (
        (SELECT * FROM relations
        WHERE tenant_id = :tenant_id AND same_key(id, wanted.id) ORDER BY id LIMIT 1)
        UNION ALL
        (SELECT * FROM relations
        WHERE tenant_id = :tenant_id AND same_key(version_of, wanted.id) ORDER BY version_of OFFSET 0)
    ) AS v
    WHERE v.added_revision <= :as_of_revision AND is_live_at(v.removed_revision, :as_of_revision)
    LIMIT 1
) AS r
ORDER BY wanted.position;

-- name: search_relations
-- Edges of a graph by the names of their ends, in any form, and their type, where these are not null, oldest first.
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM relations edge
-- include: ends
WHERE edge.tenant_id = :tenant_id AND edge.graph_id = :graph_id AND edge.removed_revision IS NULL AND -- include: reached
    AND -- include: named
    AND (:source::text IS NULL OR edge.from_node = ANY (ARRAY(SELECT id FROM forms_of(:tenant_id, :graph_id, :source))))
    AND (:target::text IS NULL OR edge.to_node = ANY (ARRAY(SELECT id FROM forms_of(:tenant_id, :graph_id, :target))))
    AND (:type::text IS NULL OR edge.type = :type)
ORDER BY edge.created_at, edge.id
OFFSET :offset
LIMIT :limit;

-- name: search_relations_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT edge.id, source.name AS source, target.name AS target, edge.type, edge.created_at,
    coalesce(edge.updated_at, edge.created_at) AS updated_at
FROM relations_at(:tenant_id, :graph_id, :as_of_revision) edge
JOIN LATERAL node_at(:tenant_id, edge.from_node, :as_of_time) source ON source.name IS NOT NULL
JOIN LATERAL node_at(:tenant_id, edge.to_node, :as_of_time) target ON target.name IS NOT NULL
WHERE -- include: reached
    AND (:source::text IS NULL OR source.node_id = ANY (ARRAY(
        SELECT node_id FROM forms_at(:tenant_id, :graph_id, :source, :as_of_revision))))
    AND (:target::text IS NULL OR target.node_id = ANY (ARRAY(
        SELECT node_id FROM forms_at(:tenant_id, :graph_id, :target, :as_of_revision))))
    AND (:type::text IS NULL OR edge.type = :type)
ORDER BY edge.created_at, edge.id
OFFSET :offset
LIMIT :limit;

-- name: most_connected
-- The nodes of a graph at which most of its newest :examined edges begin or end, at most :limit.
SELECT e.node_id
FROM (
    SELECT from_node, to_node, to_graph FROM relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
    ORDER BY id DESC
    LIMIT :examined
) AS r
CROSS JOIN LATERAL (VALUES (r.from_node), (CASE WHEN r.to_graph = :graph_id THEN r.to_node END)) AS e (node_id)
WHERE e.node_id IS NOT NULL
GROUP BY e.node_id
ORDER BY count(*) DESC, e.node_id
LIMIT :limit;

-- name: most_connected_at
-- The same as it was at a revision (:as_of_revision), of any :examined edges.
SELECT e.node_id
FROM (SELECT from_node, to_node, to_graph FROM relations_at(:tenant_id, :graph_id, :as_of_revision) LIMIT :examined) AS r
CROSS JOIN LATERAL (VALUES (r.from_node), (CASE WHEN r.to_graph = :graph_id THEN r.to_node END)) AS e (node_id)
WHERE e.node_id IS NOT NULL
GROUP BY e.node_id
ORDER BY count(*) DESC, e.node_id
LIMIT :limit;

-- name: count_types
-- How many edges of each type a graph has, most frequent first.
SELECT type, count(*) AS count FROM relations
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
    AND from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
    AND to_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
GROUP BY type
ORDER BY count DESC, type
LIMIT :limit;

-- name: count_types_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT type, count(*) AS count FROM relations_at(:tenant_id, :graph_id, :as_of_revision)
WHERE from_node NOT IN (
        -- include: expired_at
    )
    AND to_node NOT IN (
        -- include: expired_at
    )
GROUP BY type
ORDER BY count DESC, type
LIMIT :limit;

-- fragment: edge_count_corrections
-- How many edges of each type are to be added to the counts of edges_between_names, or (below zero) subtracted: edges between
-- names that lead into other graphs, and edges of this graph with an end that has expired.
SELECT edge.type, 1 AS edges
FROM relations edge
-- include: ends
WHERE edge.tenant_id = :tenant_id AND edge.graph_id = :graph_id AND edge.removed_revision IS NULL
    AND edge.to_graph <> edge.graph_id
    AND -- include: reached
    AND -- include: named
UNION ALL
SELECT edge.type, -1
FROM (
    SELECT id, type, from_node, to_node FROM relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND from_node = ANY (ARRAY(SELECT id FROM expired))
        AND removed_revision IS NULL AND to_graph = graph_id AND EXISTS (SELECT 1 FROM expired)
    UNION
    SELECT id, type, from_node, to_node FROM relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND to_node = ANY (ARRAY(SELECT id FROM expired))
        AND removed_revision IS NULL AND to_graph = graph_id AND EXISTS (SELECT 1 FROM expired)
) AS edge
-- include: ends
WHERE coalesce(source.removed_revision, target.removed_revision) IS NULL AND source.name || target.name IS NOT NULL

-- fragment: expired
-- The nodes with names that have expired: they are stored until they are purged.
expired AS MATERIALIZED (
    SELECT id FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp()
        AND removed_revision IS NULL AND name IS NOT NULL
)

-- name: count_named_types
-- How many edges of each type a graph has between nodes with names (as list_relations), most frequent first.
WITH -- include: expired
SELECT counted.type, sum(counted.edges)::bigint AS count
FROM (
    SELECT type, edges FROM edges_between_names(:tenant_id, :graph_id)
    UNION ALL
    -- include: edge_count_corrections
) AS counted
GROUP BY counted.type
HAVING sum(counted.edges) > 0
ORDER BY count DESC, counted.type
LIMIT :limit;

-- name: count_between_names
-- How many edges a graph has between two of its own nodes with names, expired nodes included.
SELECT coalesce(sum(edges), 0)::bigint FROM edges_between_names(:tenant_id, :graph_id);

-- name: count_edge_corrections
-- How many edges between names there are (as count_named_types) beyond count_between_names; below zero: fewer.
WITH -- include: expired
SELECT coalesce(sum(edge.edges), 0)::bigint
FROM (
    -- include: edge_count_corrections
) AS edge;

-- name: count_named_types_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT edge.type, count(*) AS count
FROM relations_at(:tenant_id, :graph_id, :as_of_revision) edge
JOIN LATERAL node_at(:tenant_id, edge.from_node, :as_of_time) source ON source.name IS NOT NULL
JOIN LATERAL node_at(:tenant_id, edge.to_node, :as_of_time) target ON target.name IS NOT NULL
WHERE -- include: reached
GROUP BY edge.type
ORDER BY count DESC, edge.type
LIMIT :limit;

-- name: list_symlinks
-- The edges that lead from a graph into others, or with :inbound from others into it, oldest first, without their metadata,
-- and whether their targets still live. :reachable_graphs: only edges whose other graph is one of these; null: any.
SELECT edge.id, edge.graph_id, edge.from_node, edge.to_graph, edge.to_node, edge.type, '{}'::jsonb AS metadata,
    edge.ordinal, edge.created_at, edge.created_by, coalesce(edge.updated_at, edge.created_at) AS updated_at, EXISTS (
        SELECT 1 FROM nodes target WHERE target.tenant_id = :tenant_id AND target.id = edge.to_node
            AND target.removed_revision IS NULL AND is_current(target.expires_at)
    ) AS target_lives
FROM (
    SELECT *, to_graph AS other FROM relations
    WHERE NOT :inbound AND tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
        AND to_graph <> graph_id
    UNION ALL
    SELECT *, graph_id AS other FROM relations
    WHERE :inbound AND tenant_id = :tenant_id AND to_graph = :graph_id AND removed_revision IS NULL
        AND to_graph <> graph_id
) AS edge
WHERE (:reachable_graphs::uuid[] IS NULL OR edge.other = ANY (:reachable_graphs))
    AND edge.from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
ORDER BY edge.id
OFFSET :offset
LIMIT :limit;
