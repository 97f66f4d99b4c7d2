-- name: list_ancestor_ids
-- These live nodes and all their ancestors, each once, with its parent. Expired ones count: their expiry may be extended,
-- which would complete a cycle. UNION visits no node twice; a CYCLE clause would compare each with the path to it, which
-- took 9 s for a chain of 9,000. Here and below, each level is looked up by itself (ADR 32): while a table has no
-- statistics, the planner would compare each level with every node instead (1,200 levels: 7 s).
WITH RECURSIVE above AS (
    SELECT id, parent_id FROM nodes WHERE tenant_id = :tenant_id AND id = ANY (:node_ids::uuid[])
        AND is_live(removed_revision)
    UNION
    SELECT n.id, n.parent_id FROM above a
    CROSS JOIN LATERAL (
        SELECT id, parent_id FROM nodes
        WHERE tenant_id = :tenant_id AND id = a.parent_id AND is_live(removed_revision)
        OFFSET 0
    ) AS n
)
SELECT id, parent_id FROM above;

-- name: list_ancestors
-- The live ancestors of a node, nearest first, at most :levels levels, up to the first that is removed or has expired.
WITH RECURSIVE above AS (
    SELECT NULL::uuid AS id, parent_id, 0 AS level FROM nodes WHERE tenant_id = :tenant_id AND id = :node_id
    UNION ALL
    SELECT p.id, p.parent_id, a.level + 1 FROM above a
    CROSS JOIN LATERAL (
        SELECT id, parent_id FROM nodes
        WHERE tenant_id = :tenant_id AND id = a.parent_id AND is_live(removed_revision)
            AND coalesce(expires_at > statement_timestamp(), true)
        OFFSET 0
    ) AS p
    WHERE a.level < :levels
)
SELECT id FROM above WHERE level > 0 ORDER BY level;

-- name: list_ancestors_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time) of a graph (:graph_id).
WITH RECURSIVE above AS (
    SELECT NULL::uuid AS id, parent_id, 0 AS level FROM version_at(:tenant_id, :node_id, :as_of_revision)
    WHERE graph_id = :graph_id
    UNION ALL
    SELECT p.node_id, p.parent_id, a.level + 1 FROM above a
    CROSS JOIN LATERAL (
        SELECT node_id, parent_id FROM version_at(:tenant_id, a.parent_id, :as_of_revision)
        WHERE graph_id = :graph_id AND coalesce(expires_at > :as_of_time, true)
        OFFSET 0
    ) AS p
    WHERE a.level < :levels
)
SELECT id FROM above WHERE level > 0 ORDER BY level;

-- name: list_children
-- The live children of a node, oldest first.
SELECT id FROM nodes
WHERE tenant_id = :tenant_id AND parent_id = :node_id AND removed_revision IS NULL AND is_current(expires_at)
ORDER BY id
OFFSET :offset
LIMIT :limit;

-- name: list_children_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time) of a graph (:graph_id).
SELECT node_id AS id FROM children_at(:tenant_id, :graph_id, :node_id, :as_of_revision)
WHERE is_current_at(expires_at, :as_of_time)
ORDER BY node_id
OFFSET :offset
LIMIT :limit;

-- name: list_descendants
-- The live descendants of a node, depth first, siblings oldest first, at most :max_levels levels.
WITH RECURSIVE below AS (
    SELECT id, 1 AS level FROM nodes
    WHERE tenant_id = :tenant_id AND parent_id = :node_id AND removed_revision IS NULL
        AND coalesce(expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT n.id, b.level + 1 FROM below b
    CROSS JOIN LATERAL (
        SELECT id FROM nodes
        WHERE tenant_id = :tenant_id AND parent_id = b.id AND removed_revision IS NULL
            AND coalesce(expires_at > statement_timestamp(), true)
        OFFSET 0
    ) AS n
    WHERE b.level < :max_levels
) SEARCH DEPTH FIRST BY id SET position
SELECT id FROM below ORDER BY position OFFSET :offset LIMIT :limit;

-- name: list_descendants_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time) of a graph (:graph_id).
WITH RECURSIVE below AS (
    SELECT node_id AS id, 1 AS level FROM children_at(:tenant_id, :graph_id, :node_id, :as_of_revision)
    WHERE is_current_at(expires_at, :as_of_time)
    UNION ALL
    SELECT n.node_id, b.level + 1 FROM below b
    CROSS JOIN LATERAL (
        SELECT node_id FROM children_at(:tenant_id, :graph_id, b.id, :as_of_revision)
        WHERE is_current_at(expires_at, :as_of_time)
        OFFSET 0
    ) AS n
    WHERE b.level < :max_levels
) SEARCH DEPTH FIRST BY id SET position
SELECT id FROM below ORDER BY position OFFSET :offset LIMIT :limit;

-- name: list_roots
-- Live entities that have no live parent, oldest first. The parent is looked up (ADR 32).
SELECT n.id FROM nodes n
WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL AND n.name IS NOT NULL
    AND NOT n.placeholder AND is_current(n.expires_at) AND NOT EXISTS (
        SELECT 1 FROM nodes p WHERE p.tenant_id = :tenant_id AND p.id = n.parent_id AND p.removed_revision IS NULL
            AND is_current(p.expires_at)
        OFFSET 0)
ORDER BY n.id
OFFSET :offset
LIMIT :limit;

-- name: list_roots_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT n.node_id AS id FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) n
WHERE n.name IS NOT NULL AND NOT n.placeholder AND is_current_at(n.expires_at, :as_of_time) AND NOT EXISTS (
    SELECT 1 FROM version_at(:tenant_id, n.parent_id, :as_of_revision) p
    WHERE is_current_at(p.expires_at, :as_of_time)
    OFFSET 0)
ORDER BY n.node_id
OFFSET :offset
LIMIT :limit;
