-- name: find_quotas
-- What the tenant's plan lets it store.
SELECT p.name AS plan, p.graphs, p.nodes_per_graph, p.observations, p.stored_bytes, p.embeddings_per_day
FROM tenants t
JOIN plans p ON p.name = t.plan
WHERE t.id = :tenant_id;

-- name: take_turn
-- Let one transaction of the tenant at a time add to :what and commit. It is taken last: who has it waits for nobody.
SELECT pg_advisory_xact_lock(hashtextextended(:what::text || ' of ' || :tenant_id::uuid::text, 0));

-- name: count_totals
-- What the tenant stores in all its graphs. Asked in a statement of its own after the turn was taken, it sees what those
-- committed that had it before.
SELECT count(*) AS graphs, coalesce(sum(observations), 0)::bigint AS observations,
    coalesce(sum(stored_bytes), 0)::bigint AS stored_bytes
FROM graph_heads WHERE tenant_id = :tenant_id;

-- name: count_embedded
-- Passages that were given vectors in the day from :since on.
SELECT coalesce(sum(passages), 0)::bigint FROM usage_hourly
WHERE tenant_id = :tenant_id AND hour >= :since::timestamptz AND hour < :since + interval '1 day' AND kind = 'work'
    AND name = 'embed_passages';

-- name: most_nodes
-- Entities, facts and placeholders of the graph that has the most; :allowed: of these graphs, where it is not null.
SELECT coalesce(max(entities + facts + placeholders), 0)::bigint FROM graph_heads
WHERE tenant_id = :tenant_id AND (:allowed::uuid[] IS NULL OR graph_id = ANY (:allowed));
