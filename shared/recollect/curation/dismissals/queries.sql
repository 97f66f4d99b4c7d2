-- name: lock_dismissals
-- Let no other transaction dismiss pairs of a graph until this one ends, and count those that are dismissed.
WITH locked AS (
    SELECT id FROM graphs WHERE tenant_id = :tenant_id AND id = :graph_id FOR NO KEY UPDATE
)
SELECT count(d.node_id) FROM locked g
LEFT JOIN dismissals d ON d.tenant_id = :tenant_id AND d.graph_id = g.id;

-- name: insert_dismissal
-- Record that two live entities of a graph are different, once; return nothing where one of them is not there.
INSERT INTO dismissals AS d (tenant_id, graph_id, node_id, other_id, likeness, dismissed_by)
SELECT :tenant_id, :graph_id, :node_id, :other_id, :likeness, :dismissed_by
WHERE (
    SELECT count(*) FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (ARRAY[:node_id::uuid, :other_id::uuid])
        AND removed_revision IS NULL AND name IS NOT NULL AND NOT placeholder
) = 2
ON CONFLICT (tenant_id, graph_id, node_id, other_id) DO NOTHING
RETURNING d.node_id;

-- name: insert_dismissals
-- Record that pairs of entities of a graph are different, each once.
INSERT INTO dismissals (tenant_id, graph_id, node_id, other_id, dismissed_by)
SELECT :tenant_id, :graph_id, pair.node_id, pair.other_id, :dismissed_by
FROM unnest(:node_ids::uuid[], :other_ids::uuid[]) AS pair (node_id, other_id)
ON CONFLICT (tenant_id, graph_id, node_id, other_id) DO NOTHING;

-- name: find_dismissal
-- A dismissed pair, if it is one.
SELECT node_id FROM dismissals
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = :node_id AND other_id = :other_id;

-- name: delete_dismissal
-- Take back that a pair is different; return it with the similarity of its former proposal.
DELETE FROM dismissals
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = :node_id AND other_id = :other_id
RETURNING node_id, other_id, likeness;

-- name: list_dismissed_pairs
-- The ids of all dismissed pairs of a graph.
SELECT node_id, other_id FROM dismissals WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: list_dismissals
-- Dismissed pairs with the names that their entities have, or had, the latest first; at most :limit.
SELECT d.node_id, d.other_id, n.name, o.name AS other, d.dismissed_by, d.dismissed_at
FROM dismissals d
JOIN nodes n ON n.tenant_id = :tenant_id AND n.id = d.node_id
JOIN nodes o ON o.tenant_id = :tenant_id AND o.id = d.other_id
WHERE d.tenant_id = :tenant_id AND d.graph_id = :graph_id
ORDER BY d.dismissed_at DESC, d.node_id, d.other_id
OFFSET :offset
LIMIT :limit;

-- name: inherit_dismissals
-- An entity into which others are merged is different from what they are different from, as the same people said. Those
-- of the others stay, since a merge can be undone. At most :limit of them.
INSERT INTO dismissals AS n (tenant_id, graph_id, node_id, other_id, dismissed_by, dismissed_at)
SELECT DISTINCT ON (e.id) :tenant_id, :graph_id, least(:survivor::uuid, e.id), greatest(:survivor::uuid, e.id),
    d.dismissed_by, d.dismissed_at
FROM dismissals d
CROSS JOIN LATERAL (
    SELECT CASE WHEN d.node_id = ANY (:merged::uuid[]) THEN d.other_id ELSE d.node_id END AS id
) AS e
WHERE d.tenant_id = :tenant_id AND d.graph_id = :graph_id
    AND (d.node_id = ANY (:merged::uuid[]) OR d.other_id = ANY (:merged::uuid[]))
    AND e.id <> :survivor AND e.id <> ALL (:merged::uuid[])
ORDER BY e.id, d.dismissed_at
LIMIT :limit
ON CONFLICT (tenant_id, graph_id, node_id, other_id) DO NOTHING;
