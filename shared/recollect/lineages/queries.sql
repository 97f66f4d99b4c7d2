-- name: find_version
-- One version of a node by its own id.
SELECT * FROM versions WHERE tenant_id = $1 AND graph_id = $2 AND id = $3;

-- name: find_numbered
-- One version of a node by its number.
SELECT * FROM versions WHERE tenant_id = $1 AND graph_id = $2 AND node_id = $3 AND version = $4;

-- name: list_versions
-- Every version of a node, newest first.
SELECT * FROM versions WHERE tenant_id = $1 AND graph_id = $2 AND node_id = $3 ORDER BY version DESC OFFSET $4 LIMIT $5;

-- name: current_versions
-- The newest versions of live nodes, in the order asked for.
SELECT v.*
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN nodes n ON n.tenant_id = $1 AND n.graph_id = $2 AND n.id = wanted.id AND n.removed_revision IS NULL
    AND NOT n.placeholder AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
JOIN versions v ON v.tenant_id = $1 AND v.node_id = n.id AND v.version = n.version
ORDER BY wanted.place;

-- name: versions_at
-- The versions that were the heads of nodes at a revision and its time, of sibling heads the highest, in the order asked
-- for.
SELECT v.*
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN nodes_at($1, $2, $4) h ON h.node_id = wanted.id AND NOT h.placeholder AND (h.expires_at IS NULL OR h.expires_at > $5)
JOIN versions v ON v.tenant_id = $1 AND v.id = h.id
ORDER BY wanted.place;

-- name: list_current
-- Live nodes that pass a filter, oldest first.
SELECT n.id FROM nodes n
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND NOT n.placeholder
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    AND (cardinality($3::text[]) = 0 OR n.kind = ANY ($3))
    AND (cardinality($4::text[]) = 0 OR EXISTS (SELECT 1 FROM unnest(n.tags) AS t (tag) WHERE lower(t.tag) = ANY ($4)))
ORDER BY n.id
OFFSET $5
LIMIT $6;

-- name: lineage_exists
-- Whether the graph has, or had, that lineage.
SELECT EXISTS (SELECT 1 FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND id = $3 AND NOT placeholder);
