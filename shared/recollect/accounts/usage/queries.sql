-- fragment: summed_durations
-- The calls that lie in each range of durations, summed range by range; null where none was timed. To take each array
-- apart took five times as long (measured: 1,010 ms for 88,000 rows; so 190 ms, and without durations 80 ms).
ARRAY[sum(u.durations[1]), sum(u.durations[2]), sum(u.durations[3]), sum(u.durations[4]), sum(u.durations[5]),
    sum(u.durations[6]), sum(u.durations[7]), sum(u.durations[8]), sum(u.durations[9]), sum(u.durations[10]),
    sum(u.durations[11]), sum(u.durations[12]), sum(u.durations[13]), sum(u.durations[14]), sum(u.durations[15]),
    sum(u.durations[16])]::bigint[];

-- name: add_usage
-- Add to the counts, each in its hour. In the order of their keys, so that no two gateways wait for each other. Nothing
-- is added for a tenant that does not exist any more. :durations: each as the text of an array.
INSERT INTO usage_hourly AS u (tenant_id, hour, kind, name, calls, errors, passages, bytes_received, durations)
SELECT :tenant_id, n.hour, n.kind, n.name, n.calls, n.errors, n.passages, n.bytes_received, n.durations::bigint[]
FROM unnest(:since::timestamptz[], :kinds::text[], :names::text[], :calls::bigint[], :errors::bigint[],
    :passages::bigint[], :bytes_received::bigint[], :durations::text[])
    AS n (hour, kind, name, calls, errors, passages, bytes_received, durations)
WHERE EXISTS (SELECT 1 FROM tenants WHERE id = :tenant_id)
ORDER BY n.hour, n.kind, n.name
ON CONFLICT (tenant_id, hour, kind, name) DO UPDATE SET calls = u.calls + excluded.calls,
    errors = u.errors + excluded.errors, passages = u.passages + excluded.passages,
    bytes_received = u.bytes_received + excluded.bytes_received,
    durations = ARRAY(
        SELECT coalesce(d.counted, 0) + coalesce(d.more, 0)
        FROM unnest(u.durations, excluded.durations) WITH ORDINALITY AS d (counted, more, position)
        ORDER BY d.position
    );

-- name: count_calls
-- How often the worker did something (:name) for the tenant since a time.
SELECT coalesce(sum(calls), 0)::bigint FROM usage_hourly
WHERE tenant_id = :tenant_id AND hour >= :since AND kind = 'work' AND name = :name;

-- name: read_usage
-- The counts from :since up to :until, in sums for each hour, day, month or (all) the whole span; after the row
-- :after_since, :after_kind, :after_name.
SELECT p.since, u.kind, u.name, sum(u.calls)::bigint AS calls, sum(u.errors)::bigint AS errors,
    sum(u.passages)::bigint AS passages, sum(u.bytes_received)::bigint AS bytes_received,
    -- include: summed_durations
    AS durations
FROM usage_hourly u
CROSS JOIN LATERAL (
    SELECT CASE WHEN :per::text = 'all' THEN :since::timestamptz ELSE date_trunc(:per, u.hour, 'UTC') END AS since
) AS p
WHERE u.tenant_id = :tenant_id AND u.hour >= :since AND u.hour < :until
    AND (:after_since::timestamptz IS NULL
    OR (p.since, u.kind, u.name) > (:after_since, :after_kind::text, :after_name::text))
GROUP BY p.since, u.kind, u.name
ORDER BY p.since, u.kind, u.name
LIMIT :limit;

-- name: read_series
-- The counts from :since up to :until in each hour, day or week (:per), also if they are zero; only of :kind and of :name, if
-- they are not null.
WITH counted AS (
    SELECT date_trunc(:per, u.hour, 'UTC') AS since, sum(u.calls)::bigint AS calls, sum(u.errors)::bigint AS errors,
        sum(u.passages)::bigint AS passages, sum(u.bytes_received)::bigint AS bytes_received,
        -- include: summed_durations
        AS durations
    FROM usage_hourly u
    WHERE u.tenant_id = :tenant_id AND u.hour >= :since AND u.hour < :until
        AND (:kind::text IS NULL OR u.kind = :kind) AND (:name::text IS NULL OR u.name = :name)
    GROUP BY 1
)
SELECT p.since, coalesce(c.calls, 0) AS calls, coalesce(c.errors, 0) AS errors, coalesce(c.passages, 0) AS passages,
    coalesce(c.bytes_received, 0) AS bytes_received, coalesce(c.durations, '{}') AS durations
FROM generate_series(date_trunc(:per, :since::timestamptz, 'UTC'), :until::timestamptz - interval '1 microsecond',
    CASE :per::text WHEN 'week' THEN interval '168 hours' WHEN 'day' THEN interval '24 hours' ELSE interval '1 hour' END
) AS p (since)
LEFT JOIN counted c ON c.since = p.since
ORDER BY p.since;

-- name: list_stored
-- The contents of graphs, by name after :after, at most :limit; only of the graphs :allowed and of the graph :graph_id,
-- if they are not null. The heads have most of the counts. Passages are counted from their index in one pass. Their
-- size, with their vectors for search, is estimated from a sample of :sample passages of each graph.
WITH listed AS MATERIALIZED (
    SELECT graph.id, graph.name FROM graphs graph
    WHERE graph.tenant_id = :tenant_id AND graph.name > :after
        AND (:allowed::uuid[] IS NULL OR graph.id = ANY (:allowed::uuid[]))
        AND (:graph_id::uuid IS NULL OR graph.id = :graph_id)
    ORDER BY graph.name
    LIMIT :limit
), counted AS MATERIALIZED (
    SELECT passage.graph_id, count(*) AS passages
    FROM passages passage
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = ANY (ARRAY(SELECT id FROM listed))
        AND passage.removed_revision IS NULL
    GROUP BY passage.graph_id
)
SELECT listed.name AS graph, head.entities, head.facts, head.observations, head.relations,
    coalesce(counted.passages, 0) AS passages,
    coalesce(round(counted.passages * measured.mean), 0)::bigint AS passage_bytes
FROM listed
JOIN graph_heads head ON head.tenant_id = :tenant_id AND head.graph_id = listed.id
LEFT JOIN counted ON counted.graph_id = listed.id
LEFT JOIN LATERAL (
    SELECT avg(pg_column_size(sampled.*) + coalesce(vector.size, 0) + coalesce(evidence.size, 0)) AS mean
    FROM (
        SELECT passage.* FROM passages passage
        WHERE passage.tenant_id = :tenant_id AND passage.graph_id = listed.id AND passage.removed_revision IS NULL
        LIMIT :sample
    ) AS sampled
    LEFT JOIN LATERAL (
        SELECT pg_column_size(vector.*) AS size FROM searched_vectors vector
        WHERE vector.tenant_id = :tenant_id AND same_key(vector.passage_id, sampled.id)
        ORDER BY vector.passage_id LIMIT 1
    ) AS vector ON true
    LEFT JOIN LATERAL (
        SELECT pg_column_size(evidence.*) AS size FROM passage_evidence evidence
        WHERE evidence.tenant_id = :tenant_id AND same_key(evidence.passage_id, sampled.id)
        ORDER BY evidence.passage_id, evidence.model LIMIT 1
    ) AS evidence ON true
) AS measured ON true
ORDER BY listed.name;

-- name: tenants_with_old_usage
-- Active tenants with usage that is older than :kept.
SELECT tenant_id FROM tenants_with_old_usage(:retention);

-- name: forget_usage
-- Delete counts that are older than :kept, the oldest first: :limit rows at most. Returns their number.
WITH old AS (
    SELECT hour, kind, name FROM usage_hourly
    WHERE tenant_id = :tenant_id AND hour < statement_timestamp() - :retention::interval
    ORDER BY hour, kind, name
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM usage_hourly u USING old o
    WHERE u.tenant_id = :tenant_id AND u.hour = o.hour AND u.kind = o.kind AND u.name = o.name
    RETURNING 1
)
SELECT count(*) AS deleted FROM deleted;
