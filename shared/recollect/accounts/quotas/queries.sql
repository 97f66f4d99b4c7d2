-- name: find_quotas
-- The quotas of the tenant's plan.
SELECT p.name AS plan, p.graphs, p.nodes_per_graph, p.observations, p.stored_bytes, p.embeddings_per_day
FROM tenants t
JOIN plans p ON p.name = t.plan
WHERE t.id = :tenant_id;

-- name: lock_quota
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

-- name: use_of_tenants
-- What each of these tenants uses of what plans limit, for operators; :day: when the day began whose embeddings count.
SELECT tenant_id, graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day
FROM use_of_tenants(:tenant_ids, :day);
