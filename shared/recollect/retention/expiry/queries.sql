-- name: tenants_with_expired
-- Tenants that have something expired; asked without a tenant.
SELECT tenant_id FROM tenants_with_expired();

-- name: graphs_with_expired
-- Graphs that have something expired; at most :limit.
SELECT g.id FROM graphs g
WHERE g.tenant_id = :tenant_id AND (EXISTS (
    SELECT 1 FROM nodes n
    WHERE n.tenant_id = :tenant_id AND n.graph_id = g.id AND n.expires_at <= statement_timestamp()
        AND n.removed_revision IS NULL
        AND n.status <> 'archived'
) OR EXISTS (
    SELECT 1 FROM observations o
    WHERE o.tenant_id = :tenant_id AND o.graph_id = g.id AND o.expires_at <= statement_timestamp()
        AND o.removed_revision IS NULL
))
ORDER BY g.id
LIMIT :limit;

-- fragment: untied
-- Whether a node is archived and has no relation with a live node. A placeholder lives by its relations only. Relations
-- and their other ends are looked up by their keys (ADR 32).
node.removed_revision IS NULL AND node.status = 'archived' AND NOT EXISTS (
        SELECT 1 FROM relations edge CROSS JOIN LATERAL (
            SELECT 1 FROM nodes other
            WHERE other.tenant_id = :tenant_id AND other.id = edge.to_node AND is_live(other.removed_revision)
                AND coalesce(other.expires_at > statement_timestamp(), true) AND NOT other.placeholder
            OFFSET 0
        ) AS target
        WHERE edge.tenant_id = :tenant_id AND same_key(edge.from_node, node.id) AND edge.removed_revision IS NULL
        ORDER BY edge.from_node OFFSET 0
    ) AND NOT EXISTS (
        SELECT 1 FROM relations edge CROSS JOIN LATERAL (
            SELECT 1 FROM nodes other
            WHERE other.tenant_id = :tenant_id AND other.id = edge.from_node AND is_live(other.removed_revision)
                AND coalesce(other.expires_at > statement_timestamp(), true) AND NOT other.placeholder
            OFFSET 0
        ) AS source
        WHERE edge.tenant_id = :tenant_id AND same_key(edge.to_node, node.id) AND edge.removed_revision IS NULL
        ORDER BY edge.to_node OFFSET 0
    )

-- name: find_expiring
-- Active nodes and observations of a graph that expire within :within, soonest first, behind the position (:after_time
-- and :after_id) where it is given; at most :limit. Each list is bounded by itself, so that none is sorted as a whole.
SELECT memory_id, node_id, name, text, expires_at FROM (
    (
        SELECT n.id AS memory_id, n.id AS node_id, n.name, coalesce(n.summary, n.content, '') AS text, n.expires_at
        FROM nodes n
        WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL AND n.status = 'active'
            AND NOT n.placeholder AND n.expires_at > statement_timestamp()
            AND n.expires_at <= statement_timestamp() + :within::interval
            AND (:after_time::timestamptz IS NULL OR (n.expires_at, n.id) > (:after_time, :after_id::uuid))
        ORDER BY n.expires_at, n.id
        LIMIT :limit
    )
    UNION ALL
    (
        SELECT o.id, o.node_id, n.name, o.content, o.expires_at
        FROM observations o
        JOIN nodes n ON n.tenant_id = :tenant_id AND n.id = o.node_id AND n.removed_revision IS NULL
            AND coalesce(n.expires_at > statement_timestamp(), true)
        WHERE o.tenant_id = :tenant_id AND o.graph_id = :graph_id AND o.removed_revision IS NULL AND o.status = 'active'
            AND o.expires_at > statement_timestamp() AND o.expires_at <= statement_timestamp() + :within::interval
            AND (:after_time::timestamptz IS NULL OR (o.expires_at, o.id) > (:after_time, :after_id::uuid))
        ORDER BY o.expires_at, o.id
        LIMIT :limit
    )
) AS expiring
ORDER BY expires_at, memory_id
LIMIT :limit;

-- name: find_expiring_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT memory_id, node_id, name, text, expires_at FROM (
    SELECT node_id AS memory_id, node_id, name, coalesce(summary, content, '') AS text, expires_at
    FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
    WHERE status = 'active' AND NOT placeholder
    UNION ALL
    SELECT o.id, o.node_id, n.name, o.content, o.expires_at
    FROM observations_at(:tenant_id, :graph_id, :as_of_revision) o
    JOIN nodes_at(:tenant_id, :graph_id, :as_of_revision) n ON n.node_id = o.node_id
        AND is_current_at(n.expires_at, :as_of_time)
    WHERE o.status = 'active'
) AS expiring
WHERE expires_at > :as_of_time AND expires_at <= :as_of_time + :within::interval
    AND (:after_time::timestamptz IS NULL OR (expires_at, memory_id) > (:after_time, :after_id::uuid))
ORDER BY expires_at, memory_id
LIMIT :limit;

-- name: tenants_with_purgeable
-- Tenants that have something archived that expired longer ago than :retention; asked without a tenant.
SELECT tenant_id FROM tenants_with_purgeable(:retention);

-- name: graphs_with_purgeable
-- plan: once from here
-- Graphs with something to delete that expired longer ago than :retention; at most :limit. A graph in which relations
-- keep all of it is not among them, and takes no place of others.
SELECT DISTINCT node.graph_id FROM nodes node
WHERE node.tenant_id = :tenant_id AND node.expires_at < statement_timestamp() - :retention::interval
    AND -- include: untied
ORDER BY node.graph_id
LIMIT :limit;

-- name: find_purgeable
-- plan: once from here
-- Archived nodes that expired before :before and have no relation with a live node, longest expired first; at most
-- :limit.
SELECT node.id FROM nodes node
WHERE node.tenant_id = :tenant_id AND node.graph_id = :graph_id AND node.expires_at < :before AND -- include: untied
ORDER BY node.expires_at, node.id
LIMIT :limit;
