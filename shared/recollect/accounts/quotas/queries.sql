-- name: find_quotas
-- The quotas of the tenant's plan.
SELECT p.name AS plan, p.graphs, p.nodes_per_graph, p.observations, p.stored_bytes, p.embeddings_per_day
FROM tenants t
JOIN plans p ON p.name = t.plan
WHERE t.id = :tenant_id;

-- name: take_turn
-- Let one transaction of the tenant at a time add to :what and commit. It is taken last, so that its holder waits for
-- no other lock.
SELECT pg_advisory_xact_lock(hashtextextended(:what::text || ' of ' || :tenant_id::uuid::text, 0));

-- name: count_totals
-- The totals of the tenant in all its graphs. As a statement of its own after the turn was taken, it sees the commits
-- of earlier holders of the turn.
SELECT count(*) AS graphs, coalesce(sum(observations), 0)::bigint AS observations,
    coalesce(sum(counted_bytes(h)), 0)::bigint AS stored_bytes
FROM graph_heads h WHERE tenant_id = :tenant_id;

-- name: count_embedded
-- The number of passages that were embedded in the day from :since on.
SELECT coalesce(sum(passages), 0)::bigint FROM usage_hourly
WHERE tenant_id = :tenant_id AND hour >= :since::timestamptz AND hour < :since + interval '1 day' AND kind = 'work'
    AND name = 'embed_passages';

-- name: most_nodes
-- The number of entities, facts and placeholders in the largest graph; only of the graphs :allowed, if it is not null.
SELECT coalesce(max(entities + facts + placeholders), 0)::bigint FROM graph_heads
WHERE tenant_id = :tenant_id AND (:allowed::uuid[] IS NULL OR graph_id = ANY (:allowed));

-- name: tenants_with_uncounted_rows
-- Active tenants with graphs whose rows from before migration 0090 are not counted; asked without a tenant.
SELECT tenant_id FROM tenants_with_uncounted_rows();

-- name: find_uncounted_graph
-- A graph of the tenant whose rows from before migration 0090 are not counted.
SELECT graph_id FROM graph_heads WHERE tenant_id = :tenant_id AND NOT rows_counted LIMIT 1;

-- name: count_missing_bytes
-- What is missing in the row_bytes of a graph. That does not change while others write, because triggers count what they
-- add and delete; so no lock is taken.
SELECT (SELECT coalesce(sum(row_bytes_of(n)), 0) FROM nodes n WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id)
    + (SELECT coalesce(sum(row_bytes_of(v)), 0) FROM node_versions v
        WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id)
    + (SELECT coalesce(sum(row_bytes_of(o)), 0) FROM observations o
        WHERE o.tenant_id = :tenant_id AND o.graph_id = :graph_id)
    + (SELECT coalesce(sum(row_bytes_of(r)), 0) FROM relations r WHERE r.tenant_id = :tenant_id AND r.graph_id = :graph_id)
    + (SELECT coalesce(sum(row_bytes_of(a)), 0) FROM aliases a WHERE a.tenant_id = :tenant_id AND a.graph_id = :graph_id)
    - h.row_bytes AS missing
FROM graph_heads h WHERE h.tenant_id = :tenant_id AND h.graph_id = :graph_id;

-- name: add_missing_bytes
-- Add what was missing in the row_bytes of a graph, once.
UPDATE graph_heads SET row_bytes = row_bytes + :missing, rows_counted = true
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND NOT rows_counted;

-- name: take_time
-- Let each statement of this transaction take :milliseconds, unless the settings allow more, or any time.
SELECT set_config('statement_timeout', greatest(setting::bigint, :milliseconds)::text, true) FROM pg_settings
WHERE name = 'statement_timeout' AND setting <> '0';
