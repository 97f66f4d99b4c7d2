-- name: insert_relations
-- New edges; one that is there already is skipped.
INSERT INTO relations (tenant_id, graph_id, id, from_node, to_graph, to_node, type, metadata, added_revision, created_at,
    created_by)
SELECT $1, $2, i.id, i.from_node, $2, i.to_node, i.type, i.metadata, $3, $4, $5
FROM jsonb_to_recordset($6::jsonb) AS i (id uuid, from_node uuid, to_node uuid, type text, metadata jsonb)
ON CONFLICT (tenant_id, from_node, type, to_node) WHERE removed_revision IS NULL DO NOTHING
RETURNING id;

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

-- name: find_lonely_placeholders
-- Those of these nodes that are placeholders without any edge.
SELECT n.id FROM nodes n
WHERE n.tenant_id = $1 AND n.id = ANY ($2::uuid[]) AND n.placeholder AND n.removed_revision IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM relations r WHERE r.tenant_id = $1 AND r.from_node = n.id AND r.removed_revision IS NULL
    ) AND NOT EXISTS (
        SELECT 1 FROM relations r WHERE r.tenant_id = $1 AND r.to_node = n.id AND r.removed_revision IS NULL
    );

-- name: relations_touching
-- Edges with an end among these nodes, oldest first; both ends live and have names. At most $3.
-- Here and below, what the ends must be is said so that it calls for no partial index: while a table has no statistics,
-- the planner takes such an index to hold one row, and compares every edge with every node (11,000 edges: 30 s).
SELECT r.id, f.name AS source, t.name AS target, r.type
FROM (
    SELECT id, from_node, to_node, type, added_revision FROM relations
    WHERE tenant_id = $1 AND from_node = ANY ($2::uuid[]) AND removed_revision IS NULL
    UNION
    SELECT id, from_node, to_node, type, added_revision FROM relations
    WHERE tenant_id = $1 AND to_node = ANY ($2::uuid[]) AND removed_revision IS NULL
) AS r
JOIN nodes f ON f.tenant_id = $1 AND f.id = r.from_node
JOIN nodes t ON t.tenant_id = $1 AND t.id = r.to_node
WHERE coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
ORDER BY r.added_revision, r.id
LIMIT $3;

-- name: relations_between
-- Edges with both ends among these nodes, oldest first.
SELECT r.id, f.name AS source, t.name AS target, r.type
FROM relations r
JOIN nodes f ON f.tenant_id = $1 AND f.id = r.from_node
JOIN nodes t ON t.tenant_id = $1 AND t.id = r.to_node
WHERE r.tenant_id = $1 AND r.from_node = ANY ($2::uuid[]) AND r.to_node = ANY ($2::uuid[]) AND r.removed_revision IS NULL
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
ORDER BY r.added_revision, r.id
LIMIT $3;

-- name: list_relations
-- Every edge of a graph whose ends have names, oldest first.
SELECT r.id, f.name AS source, t.name AS target, r.type
FROM relations r
JOIN nodes f ON f.tenant_id = $1 AND f.id = r.from_node
JOIN nodes t ON t.tenant_id = $1 AND t.id = r.to_node
WHERE r.tenant_id = $1 AND r.graph_id = $2 AND r.removed_revision IS NULL
    AND coalesce(f.removed_revision, t.removed_revision) IS NULL AND f.name || t.name IS NOT NULL
ORDER BY r.id
OFFSET $3
LIMIT $4;
