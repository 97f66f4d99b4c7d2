-- name: add_usage
-- Add to what is counted, each in its hour. In the order of their keys, so that no two gateways wait for each other.
-- Nothing of a tenant that is gone.
INSERT INTO usage_hourly AS u (tenant_id, hour, kind, name, calls, errors, passages, bytes_received)
SELECT $1, n.hour, n.kind, n.name, n.calls, n.errors, n.passages, n.bytes_received
FROM unnest($2::timestamptz[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS n (hour, kind, name, calls, errors, passages, bytes_received)
WHERE EXISTS (SELECT 1 FROM tenants WHERE id = $1)
ORDER BY n.hour, n.kind, n.name
ON CONFLICT (tenant_id, hour, kind, name) DO UPDATE SET calls = u.calls + excluded.calls,
    errors = u.errors + excluded.errors, passages = u.passages + excluded.passages,
    bytes_received = u.bytes_received + excluded.bytes_received;

-- name: read_usage
-- What was counted from $2 up to $3, in sums for each hour, day, month or (all) the whole; after the row $5, $6, $7.
SELECT p.since, u.kind, u.name, sum(u.calls)::bigint AS calls, sum(u.errors)::bigint AS errors,
    sum(u.passages)::bigint AS passages, sum(u.bytes_received)::bigint AS bytes_received
FROM usage_hourly u
CROSS JOIN LATERAL (
    SELECT CASE WHEN $4::text = 'all' THEN $2::timestamptz ELSE date_trunc($4, u.hour, 'UTC') END AS since
) AS p
WHERE u.tenant_id = $1 AND u.hour >= $2 AND u.hour < $3
    AND ($5::timestamptz IS NULL OR (p.since, u.kind, u.name) > ($5, $6::text, $7::text))
GROUP BY p.since, u.kind, u.name
ORDER BY p.since, u.kind, u.name
LIMIT $8;

-- name: list_stored
-- What graphs hold, by name after $2, at most $3; $4: only these ids, where it is not null; $5: only this one, likewise.
-- The heads know most of it. Passages are counted from their index in one pass, and weighed by a sample of $6 of each graph.
WITH listed AS MATERIALIZED (
    SELECT g.id, g.name FROM graphs g
    WHERE g.tenant_id = $1 AND g.name > $2 AND ($4::uuid[] IS NULL OR g.id = ANY ($4::uuid[]))
        AND ($5::uuid IS NULL OR g.id = $5)
    ORDER BY g.name
    LIMIT $3
), counted AS MATERIALIZED (
    SELECT p.graph_id, count(*) AS passages
    FROM passages p
    WHERE p.tenant_id = $1 AND p.graph_id = ANY (ARRAY(SELECT id FROM listed)) AND p.removed_revision IS NULL
    GROUP BY p.graph_id
)
SELECT l.name AS graph, h.entities, h.facts, h.observations, h.relations, coalesce(c.passages, 0) AS passages,
    coalesce(round(c.passages * s.mean), 0)::bigint AS passage_bytes
FROM listed l
JOIN graph_heads h ON h.tenant_id = $1 AND h.graph_id = l.id
LEFT JOIN counted c ON c.graph_id = l.id
LEFT JOIN LATERAL (
    SELECT avg(pg_column_size(x.*)) AS mean FROM (
        SELECT p.* FROM passages p
        WHERE p.tenant_id = $1 AND p.graph_id = l.id AND p.removed_revision IS NULL
        LIMIT $6
    ) AS x
) AS s ON true
ORDER BY l.name;

-- name: tenants_with_old_usage
-- Active tenants with usage that is older than it is kept.
SELECT tenant_id FROM tenants_with_old_usage($1);

-- name: forget_usage
-- Delete what was counted longer ago than $2, the oldest first: $3 rows at most. How many.
WITH old AS (
    SELECT hour, kind, name FROM usage_hourly
    WHERE tenant_id = $1 AND hour < statement_timestamp() - $2::interval
    ORDER BY hour, kind, name
    LIMIT $3
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM usage_hourly u USING old o
    WHERE u.tenant_id = $1 AND u.hour = o.hour AND u.kind = o.kind AND u.name = o.name
    RETURNING 1
)
SELECT count(*) AS gone FROM gone;
