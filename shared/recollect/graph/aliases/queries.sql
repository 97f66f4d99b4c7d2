-- name: insert_aliases
-- Let nodes be found by other names too, each once.
INSERT INTO aliases (tenant_id, graph_id, node_id, name, added_revision)
SELECT DISTINCT $1::uuid, $2::uuid, i.node_id, i.name, $3::bigint
FROM unnest($4::uuid[], $5::text[]) AS i (node_id, name)
WHERE NOT EXISTS (
    SELECT 1 FROM aliases a
    WHERE a.tenant_id = $1 AND a.node_id = i.node_id AND a.name = i.name AND a.removed_revision IS NULL
)
RETURNING node_id;

-- name: keep_aliases
-- Let nodes no longer be found by other names than these.
UPDATE aliases a SET removed_revision = $2
WHERE a.tenant_id = $1 AND a.node_id = ANY ($3::uuid[]) AND a.removed_revision IS NULL AND NOT EXISTS (
    SELECT FROM unnest($4::uuid[], $5::text[]) AS i (node_id, name) WHERE i.node_id = a.node_id AND i.name = a.name
)
RETURNING a.node_id;

-- name: remove_aliases
-- Let nodes no longer be found by names that they had.
UPDATE aliases a SET removed_revision = $2
FROM unnest($3::uuid[], $4::text[]) AS i (node_id, name)
WHERE a.tenant_id = $1 AND a.node_id = i.node_id AND a.name = i.name AND a.removed_revision IS NULL;

-- name: move_names
-- Let a node be found by the names and aliases of these nodes, each once.
INSERT INTO aliases (tenant_id, graph_id, node_id, name, added_revision)
SELECT $1, $2, $3, name, $4
FROM (
    SELECT name FROM nodes WHERE tenant_id = $1 AND id = ANY ($5::uuid[]) AND name IS NOT NULL
    UNION
    SELECT name FROM aliases WHERE tenant_id = $1 AND node_id = ANY ($5::uuid[]) AND removed_revision IS NULL
) AS i
WHERE NOT EXISTS (
    SELECT 1 FROM aliases a
    WHERE a.tenant_id = $1 AND a.node_id = $3 AND a.name = i.name AND a.removed_revision IS NULL
);

-- name: names_of
-- How live entities are known: their names, and in one text those that they had before a merge; and who made them.
SELECT n.id, n.name, n.created_by, n.expires_at, (
    SELECT string_agg(a.name, ' ' ORDER BY a.name) FROM aliases a
    WHERE a.tenant_id = $1 AND a.node_id = n.id AND a.removed_revision IS NULL
) AS aliases
FROM nodes n
WHERE n.tenant_id = $1 AND n.id = ANY ($2::uuid[]) AND n.removed_revision IS NULL AND n.name IS NOT NULL
    AND NOT n.placeholder;
