-- name: insert_autolink
-- A fact waits to be related to the entities that it is like.
INSERT INTO autolinks (tenant_id, graph_id, node_id, threshold) VALUES (:tenant_id, :graph_id, :node_id, :threshold)
ON CONFLICT (tenant_id, node_id) DO UPDATE SET threshold = excluded.threshold;

-- name: tenants_with_autolinks
-- Tenants that have facts to be related, and embedded; asked without a tenant.
SELECT tenant_id FROM tenants_with_autolinks();

-- name: graphs_with_autolinks
-- Graphs that have facts to be related, and embedded, at most :limit.
SELECT DISTINCT a.graph_id FROM autolinks a
WHERE a.tenant_id = :tenant_id AND NOT EXISTS (
    SELECT 1 FROM passages p
    WHERE p.tenant_id = :tenant_id AND p.node_id = a.node_id AND p.removed_revision IS NULL AND NOT p.settled
)
LIMIT :limit;

-- name: take_autolinks
-- Take facts of a graph out of the queue that are embedded, oldest first, at most :limit.
DELETE FROM autolinks WHERE tenant_id = :tenant_id AND node_id = ANY (ARRAY(
    SELECT a.node_id FROM autolinks a
    WHERE a.tenant_id = :tenant_id AND a.graph_id = :graph_id AND NOT EXISTS (
        SELECT 1 FROM passages p
        WHERE p.tenant_id = :tenant_id AND p.node_id = a.node_id AND p.removed_revision IS NULL AND NOT p.settled
    )
    ORDER BY a.node_id
    LIMIT :limit
    FOR UPDATE
))
RETURNING node_id, threshold;
