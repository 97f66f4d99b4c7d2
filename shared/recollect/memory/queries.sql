-- name: insert_autolink
-- Queue a fact to be related to similar entities.
INSERT INTO autolinks (tenant_id, graph_id, node_id, threshold) VALUES (:tenant_id, :graph_id, :node_id, :threshold)
ON CONFLICT (tenant_id, node_id) DO UPDATE SET threshold = excluded.threshold;

-- name: tenants_with_autolinks
-- Tenants that have embedded facts in the queue; runs without a tenant.
SELECT tenant_id FROM tenants_with_autolinks();

-- name: graphs_with_autolinks
-- Graphs that have embedded facts in the queue, at most :limit.
SELECT DISTINCT a.graph_id FROM autolinks a
WHERE a.tenant_id = :tenant_id AND NOT EXISTS (
    SELECT 1 FROM passages p
    WHERE p.tenant_id = :tenant_id AND p.node_id = a.node_id AND p.removed_revision IS NULL AND NOT p.settled
)
LIMIT :limit;

-- name: take_autolinks
-- Take the embedded facts of a graph out of the queue, oldest first, at most :limit.
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
