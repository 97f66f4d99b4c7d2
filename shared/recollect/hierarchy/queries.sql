-- name: list_ancestors
-- The live nodes above a node, nearest first, at most $3 levels.
WITH RECURSIVE above AS (
    SELECT parent_id AS id, 1 AS level FROM nodes WHERE tenant_id = $1 AND id = $2
    UNION ALL
    SELECT n.parent_id, a.level + 1 FROM above a
    JOIN nodes n ON n.tenant_id = $1 AND n.id = a.id AND n.removed_revision IS NULL
    WHERE a.level < $3
)
SELECT n.id FROM above a
JOIN nodes n ON n.tenant_id = $1 AND n.id = a.id AND n.removed_revision IS NULL
WHERE n.expires_at IS NULL OR n.expires_at > statement_timestamp()
ORDER BY a.level;

-- name: list_children
-- The live nodes right below a node, oldest first.
SELECT id FROM nodes
WHERE tenant_id = $1 AND parent_id = $2 AND removed_revision IS NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp())
ORDER BY id
OFFSET $3
LIMIT $4;

-- name: list_descendants
-- The live nodes below a node, depth first, siblings oldest first, at most $3 levels.
WITH RECURSIVE below AS (
    SELECT id, 1 AS level FROM nodes
    WHERE tenant_id = $1 AND parent_id = $2 AND removed_revision IS NULL
        AND (expires_at IS NULL OR expires_at > statement_timestamp())
    UNION ALL
    SELECT n.id, b.level + 1 FROM below b
    JOIN nodes n ON n.tenant_id = $1 AND n.parent_id = b.id AND n.removed_revision IS NULL
        AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    WHERE b.level < $3
) SEARCH DEPTH FIRST BY id SET place
SELECT id FROM below ORDER BY place OFFSET $4 LIMIT $5;

-- name: list_roots
-- Live entities that have no live parent, oldest first.
SELECT n.id FROM nodes n
LEFT JOIN nodes p ON p.tenant_id = $1 AND p.id = n.parent_id AND p.removed_revision IS NULL
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND n.name IS NOT NULL AND NOT n.placeholder
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp()) AND p.id IS NULL
ORDER BY n.id
OFFSET $3
LIMIT $4;
