-- fragment: reached
-- Whether an edge r stays within its graph, or leads into one of the graphs $3, where these are not null: a caller whom an
-- allow-list confines is not told what others are called.
(r.to_graph = r.graph_id OR $3::uuid[] IS NULL OR r.to_graph = ANY ($3))

-- name: remove_relations
-- Take edges away, by their ends and type.
UPDATE relations r SET removed_revision = $2
FROM unnest($3::uuid[], $4::uuid[], $5::text[]) AS i (from_node, to_node, type)
WHERE r.tenant_id = $1 AND r.from_node = i.from_node AND r.to_node = i.to_node AND r.type = i.type
    AND r.removed_revision IS NULL
RETURNING r.id, r.from_node, r.to_node;

-- name: remove_touching
-- Take every edge of this graph away that touches one of these nodes. An edge from another graph stays and dangles.
UPDATE relations r SET removed_revision = $3
WHERE r.tenant_id = $1 AND r.graph_id = $2 AND r.removed_revision IS NULL
    AND (r.from_node = ANY ($4::uuid[]) OR r.to_node = ANY ($4::uuid[]))
RETURNING r.id, r.from_node, r.to_node;

-- name: find_orphaned_placeholders
-- Those of these nodes of a graph that are placeholders without any edge of it. An edge from another graph keeps none: it
-- dangles, as where an entity goes.
SELECT n.id FROM nodes n
WHERE n.tenant_id = $1 AND (n.graph_id = $2) IS TRUE AND n.id = ANY ($3::uuid[]) AND n.placeholder
    AND n.removed_revision IS NULL AND NOT EXISTS (
        SELECT 1 FROM relations r WHERE r.tenant_id = $1 AND r.from_node = n.id AND r.removed_revision IS NULL
    ) AND NOT EXISTS (
        SELECT 1 FROM relations r
        WHERE r.tenant_id = $1 AND r.to_node = n.id AND r.removed_revision IS NULL AND (r.graph_id = $2) IS TRUE
    );

-- name: relations_touching
-- Edges of a graph with an end among these nodes, oldest first; both ends live and have names. At most $5.
-- Here and below each end is looked up by its key (LIMIT): where the planner takes a tenant to have next to nothing, it
-- would compare every edge with every node (11,000 edges: 30 s). And IS TRUE keeps it from reading the graph's every edge.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM (
    SELECT id, graph_id, from_node, to_graph, to_node, type, created_at, updated_at FROM relations
    WHERE tenant_id = $1 AND from_node = ANY ($4::uuid[]) AND removed_revision IS NULL
    UNION
    SELECT id, graph_id, from_node, to_graph, to_node, type, created_at, updated_at FROM relations
    WHERE tenant_id = $1 AND to_node = ANY ($4::uuid[]) AND removed_revision IS NULL
) AS r
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.from_node LIMIT 1) AS f
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.to_node LIMIT 1) AS t
WHERE (r.graph_id = $2) IS TRUE AND -- include: reached
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
    AND coalesce(least(f.expires_at, t.expires_at) > statement_timestamp(), true)
ORDER BY r.created_at, r.id
LIMIT $5;

-- name: relations_between
-- Edges with both ends among these nodes, oldest first.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM relations r
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.from_node LIMIT 1) AS f
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.to_node LIMIT 1) AS t
WHERE r.tenant_id = $1 AND r.from_node = ANY ($2::uuid[]) AND r.to_node = ANY ($2::uuid[]) AND r.removed_revision IS NULL
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
    AND coalesce(least(f.expires_at, t.expires_at) > statement_timestamp(), true)
ORDER BY r.created_at, r.id
LIMIT $3;

-- name: list_relations
-- Every edge of a graph whose ends have names, oldest first.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM relations r
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.from_node LIMIT 1) AS f
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.to_node LIMIT 1) AS t
WHERE r.tenant_id = $1 AND r.graph_id = $2 AND r.removed_revision IS NULL AND -- include: reached
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
    AND coalesce(least(f.expires_at, t.expires_at) > statement_timestamp(), true)
ORDER BY r.id
OFFSET $4
LIMIT $5;

-- name: relations_touching_at
-- Edges of a graph with an end among these nodes as they were at a revision ($6) and its time ($7), oldest first; both ends
-- had names. At most $5.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM (
    SELECT id, graph_id, from_node, to_graph, to_node, type, created_at, updated_at FROM relations_at($1, $2, $6)
    WHERE from_node = ANY ($4::uuid[])
    UNION
    SELECT id, graph_id, from_node, to_graph, to_node, type, created_at, updated_at FROM relations_at($1, $2, $6)
    WHERE to_node = ANY ($4::uuid[])
) AS r
JOIN LATERAL node_at($1, r.from_node, $7) f ON f.name IS NOT NULL
JOIN LATERAL node_at($1, r.to_node, $7) t ON t.name IS NOT NULL
WHERE -- include: reached
ORDER BY r.created_at, r.id
LIMIT $5;

-- name: relations_between_at
-- Edges with both ends among these nodes as they were at a revision and its time $6, oldest first. At most $3.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM relations_at($1, $4, $5) r
JOIN LATERAL node_at($1, r.from_node, $6) f ON f.name IS NOT NULL
JOIN LATERAL node_at($1, r.to_node, $6) t ON t.name IS NOT NULL
WHERE r.from_node = ANY ($2::uuid[]) AND r.to_node = ANY ($2::uuid[])
ORDER BY r.created_at, r.id
LIMIT $3;

-- name: list_relations_at
-- Every edge of a graph as they were at a revision ($6) and its time ($7), whose ends had names, oldest first.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM relations_at($1, $2, $6) r
JOIN LATERAL node_at($1, r.from_node, $7) f ON f.name IS NOT NULL
JOIN LATERAL node_at($1, r.to_node, $7) t ON t.name IS NOT NULL
WHERE -- include: reached
ORDER BY r.id
OFFSET $4
LIMIT $5;

-- name: insert_edges
-- New edges between nodes by id; one that is there already is skipped. Which state of the graph shows an edge is decided by
-- its revisions: its time is only told, and may be one before.
INSERT INTO relations (tenant_id, graph_id, id, from_node, to_graph, to_node, type, metadata, ordinal, added_revision,
    created_at, created_by)
SELECT $1, $2, i.id, i.from_node, i.to_graph, i.to_node, i.type, i.metadata, i.ordinal, $3,
    coalesce(least(i.created_at, $4), $4), coalesce(i.actor, $5)
FROM jsonb_to_recordset($6::jsonb) AS i (id uuid, from_node uuid, to_graph uuid, to_node uuid, type text, metadata jsonb,
    ordinal integer, created_at timestamptz, actor text)
ON CONFLICT (tenant_id, from_node, type, to_node) WHERE removed_revision IS NULL DO NOTHING
RETURNING id;

-- name: find_edges
-- Live edges by their ends and type.
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at
FROM unnest($2::uuid[], $3::uuid[], $4::text[]) AS i (from_node, to_node, type)
JOIN relations r ON r.tenant_id = $1 AND r.from_node = i.from_node AND r.to_node = i.to_node AND r.type = i.type
WHERE r.removed_revision IS NULL;

-- name: edges_by_id
-- Live edges of a graph by id, in the order asked for.
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN relations r ON r.tenant_id = $1 AND r.graph_id = $2 AND r.id = wanted.id AND r.removed_revision IS NULL
ORDER BY wanted.place;

-- name: edges_by_id_at
-- The same as they were at a revision ($4).
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN relations_at($1, $2, $4) r ON r.id = wanted.id
ORDER BY wanted.place;

-- name: rewrite_edges
-- Give live edges of this graph other properties, where they differ. They keep their ids; what they were stays as former
-- versions of them, but for what this very revision wrote.
WITH given AS (
    SELECT i.*
    FROM jsonb_to_recordset($5::jsonb) AS i (id uuid, former uuid, metadata jsonb, ordinal integer)
    JOIN relations r ON r.tenant_id = $1 AND r.graph_id = $2 AND r.id = i.id
    WHERE r.removed_revision IS NULL AND (r.metadata, r.ordinal) IS DISTINCT FROM (i.metadata, i.ordinal)
), kept AS (
    INSERT INTO relations (tenant_id, graph_id, id, version_of, from_node, to_graph, to_node, type, metadata, ordinal,
        added_revision, removed_revision, created_at, updated_at, created_by)
    SELECT r.tenant_id, r.graph_id, i.former, r.id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal,
        r.added_revision, $3, r.created_at, r.updated_at, r.created_by
    FROM given i
    JOIN relations r ON r.tenant_id = $1 AND r.id = i.id
    WHERE r.added_revision < $3
)
UPDATE relations r SET metadata = i.metadata, ordinal = i.ordinal, added_revision = $3, updated_at = $4
FROM given i
WHERE r.tenant_id = $1 AND r.id = i.id
RETURNING r.id;

-- name: remove_edges
-- Take edges of this graph away, by id.
UPDATE relations SET removed_revision = $3
WHERE tenant_id = $1 AND graph_id = $2 AND id = ANY ($4::uuid[]) AND removed_revision IS NULL
RETURNING id, from_node, to_node;

-- name: edges_between
-- Live edges of this graph from one node to another; $5: of this type, where it is not null.
SELECT id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at, created_by,
    coalesce(updated_at, created_at) AS updated_at
FROM relations
WHERE tenant_id = $1 AND graph_id = $2 AND from_node = $3 AND to_node = $4 AND removed_revision IS NULL
    AND ($5::text IS NULL OR type = $5);

-- name: edges_of
-- Live edges that start ($3) or end ($4) at one of these nodes, in the order of ordinal and age; at most $7 after $8. $5: of
-- these types, where there are any. $6: only edges with both ends within these graphs, and none whose target is gone, where it
-- is not null.
SELECT id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at, created_by,
    coalesce(updated_at, created_at) AS updated_at
FROM (
    SELECT * FROM relations r
    WHERE $3 AND r.tenant_id = $1 AND r.from_node = ANY ($2::uuid[]) AND r.removed_revision IS NULL
    UNION ALL
    SELECT * FROM relations r
    WHERE $4 AND r.tenant_id = $1 AND r.to_node = ANY ($2::uuid[]) AND r.removed_revision IS NULL
        AND NOT ($3 AND r.from_node = ANY ($2::uuid[]))
) AS r
WHERE (cardinality($5::text[]) = 0 OR type = ANY ($5)) AND ($6::uuid[] IS NULL OR (
        graph_id = ANY ($6) AND to_graph = ANY ($6) AND (to_graph = graph_id OR EXISTS (
            SELECT 1 FROM nodes t WHERE t.tenant_id = $1 AND t.id = to_node AND t.removed_revision IS NULL))))
    AND from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = $1 AND expires_at <= statement_timestamp())
    AND to_node NOT IN (SELECT id FROM nodes WHERE tenant_id = $1 AND expires_at <= statement_timestamp())
ORDER BY ordinal NULLS LAST, id
OFFSET $8
LIMIT $7;

-- name: edges_of_at
-- The same as it was at a revision ($10) of a graph ($9) and its time $11.
SELECT id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at, created_by,
    coalesce(updated_at, created_at) AS updated_at
FROM (
    SELECT * FROM relations_at($1, $9, $10) r WHERE $3 AND r.from_node = ANY ($2::uuid[])
    UNION ALL
    SELECT * FROM relations_at($1, $9, $10) r
    WHERE $4 AND r.to_node = ANY ($2::uuid[]) AND NOT ($3 AND r.from_node = ANY ($2::uuid[]))
) AS r
WHERE (cardinality($5::text[]) = 0 OR type = ANY ($5)) AND ($6::uuid[] IS NULL OR graph_id = ANY ($6) AND to_graph = ANY ($6))
    AND from_node NOT IN (SELECT node_id FROM nodes_at($1, $9, $10) WHERE expires_at <= $11)
    AND to_node NOT IN (SELECT node_id FROM nodes_at($1, $9, $10) WHERE expires_at <= $11)
ORDER BY ordinal NULLS LAST, id
OFFSET $8
LIMIT $7;

-- name: search_relations
-- Edges of a graph by the names of their ends and their type, where these are not null, oldest first.
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM relations r
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.from_node LIMIT 1) AS f
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.to_node LIMIT 1) AS t
WHERE r.tenant_id = $1 AND r.graph_id = $2 AND r.removed_revision IS NULL AND -- include: reached
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
    AND coalesce(least(f.expires_at, t.expires_at) > statement_timestamp(), true)
    AND ($4::text IS NULL OR r.from_node = (
        SELECT id FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND name = $4 AND removed_revision IS NULL))
    AND ($5::text IS NULL OR r.to_node = (
        SELECT id FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND name = $5 AND removed_revision IS NULL))
    AND ($6::text IS NULL OR r.type = $6)
ORDER BY r.created_at, r.id
OFFSET $7
LIMIT $8;

-- name: search_relations_at
-- The same as it was at a revision ($9) and its time ($10).
SELECT r.id, f.name AS source, t.name AS target, r.type, r.created_at, coalesce(r.updated_at, r.created_at) AS updated_at
FROM relations_at($1, $2, $9) r
JOIN LATERAL node_at($1, r.from_node, $10) f ON f.name IS NOT NULL
JOIN LATERAL node_at($1, r.to_node, $10) t ON t.name IS NOT NULL
WHERE -- include: reached
    AND ($4::text IS NULL OR f.name = $4) AND ($5::text IS NULL OR t.name = $5 AND r.to_graph = $2)
    AND ($6::text IS NULL OR r.type = $6)
ORDER BY r.created_at, r.id
OFFSET $7
LIMIT $8;

-- name: count_types
-- How many edges of each type a graph has, most first.
SELECT type, count(*) AS count FROM relations
WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL
    AND from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = $1 AND expires_at <= statement_timestamp())
    AND to_node NOT IN (SELECT id FROM nodes WHERE tenant_id = $1 AND expires_at <= statement_timestamp())
GROUP BY type
ORDER BY count DESC, type
LIMIT $3;

-- name: count_types_at
-- The same as it was at a revision ($4) and its time ($5).
SELECT type, count(*) AS count FROM relations_at($1, $2, $4)
WHERE from_node NOT IN (SELECT node_id FROM nodes_at($1, $2, $4) WHERE expires_at <= $5)
    AND to_node NOT IN (SELECT node_id FROM nodes_at($1, $2, $4) WHERE expires_at <= $5)
GROUP BY type
ORDER BY count DESC, type
LIMIT $3;

-- name: count_named_types
-- How many edges of each type a graph has whose ends have names, as list_relations lists them, most first.
SELECT r.type, count(*) AS count
FROM relations r
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.from_node LIMIT 1) AS f
CROSS JOIN LATERAL (SELECT * FROM nodes n WHERE n.tenant_id = $1 AND n.id = r.to_node LIMIT 1) AS t
WHERE r.tenant_id = $1 AND r.graph_id = $2 AND r.removed_revision IS NULL AND -- include: reached
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
    AND coalesce(least(f.expires_at, t.expires_at) > statement_timestamp(), true)
GROUP BY r.type
ORDER BY count DESC, r.type
LIMIT $4;

-- name: count_named_types_at
-- The same as it was at a revision ($5) and its time ($6).
SELECT r.type, count(*) AS count
FROM relations_at($1, $2, $5) r
JOIN LATERAL node_at($1, r.from_node, $6) f ON f.name IS NOT NULL
JOIN LATERAL node_at($1, r.to_node, $6) t ON t.name IS NOT NULL
WHERE -- include: reached
GROUP BY r.type
ORDER BY count DESC, r.type
LIMIT $4;

-- name: list_symlinks
-- The edges of a graph that lead into others ($3: those of others that lead into it), oldest first, and whether their
-- targets still live. $4: only where the other graph is one of these, where it is not null.
SELECT r.id, r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.metadata, r.ordinal, r.created_at, r.created_by,
    coalesce(r.updated_at, r.created_at) AS updated_at, EXISTS (
        SELECT 1 FROM nodes t WHERE t.tenant_id = $1 AND t.id = r.to_node AND t.removed_revision IS NULL
            AND (t.expires_at IS NULL OR t.expires_at > statement_timestamp())
    ) AS target_lives
FROM (
    SELECT *, to_graph AS other FROM relations
    WHERE NOT $3 AND tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND to_graph <> graph_id
    UNION ALL
    SELECT *, graph_id AS other FROM relations
    WHERE $3 AND tenant_id = $1 AND to_graph = $2 AND removed_revision IS NULL AND to_graph <> graph_id
) AS r
WHERE ($4::uuid[] IS NULL OR r.other = ANY ($4))
    AND r.from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = $1 AND expires_at <= statement_timestamp())
ORDER BY r.id
OFFSET $5
LIMIT $6;
