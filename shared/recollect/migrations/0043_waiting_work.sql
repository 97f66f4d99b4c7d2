-- How much work waits, of all tenants together: what the worker's gauges tell. Numbers only, none of a tenant.

-- For each queue: how many wait, counted up to `most`, and how long the oldest has waited, in seconds. What suspended
-- tenants have does not wait for a worker. An id of a passage (UUIDv7) begins with the milliseconds at which it was made.
CREATE FUNCTION waiting_work(most bigint)
RETURNS TABLE (queue text, waiting bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    WITH due AS (
        SELECT 'jobs' AS queue, j.next_attempt_at AS since
        FROM jobs j
        JOIN tenants t ON t.id = j.tenant_id AND t.status = 'active'
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT 'deliveries', d.next_attempt_at
        FROM webhook_deliveries d
        JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND w.enabled
        JOIN tenants t ON t.id = d.tenant_id AND t.status = 'active'
        WHERE d.next_attempt_at <= statement_timestamp()
            AND (d.claimed_until IS NULL OR d.claimed_until < statement_timestamp())
    ), counted AS (
        SELECT 'passages' AS queue, (
            SELECT count(*) FROM (
                SELECT 1 FROM passages p
                JOIN tenants t ON t.id = p.tenant_id AND t.status = 'active'
                WHERE NOT p.settled AND p.embedding IS NULL AND p.removed_revision IS NULL
                LIMIT most
            ) AS found
        ) AS waiting, (
            SELECT to_timestamp(min(('x' || left(replace(first.id::text, '-', ''), 12))::bit(48)::bigint) / 1000.0)
            FROM tenants t
            CROSS JOIN LATERAL (
                SELECT p.id FROM passages p
                WHERE p.tenant_id = t.id AND NOT p.settled AND p.embedding IS NULL AND p.removed_revision IS NULL
                ORDER BY p.id LIMIT 1
            ) AS first
            WHERE t.status = 'active'
        ) AS since
        UNION ALL
        SELECT q.queue, (SELECT count(*) FROM (SELECT 1 FROM due d WHERE d.queue = q.queue LIMIT most) AS found),
            (SELECT min(d.since) FROM due d WHERE d.queue = q.queue)
        FROM (VALUES ('jobs'), ('deliveries')) AS q (queue)
    )
    SELECT c.queue, c.waiting,
        coalesce(greatest(extract(epoch FROM statement_timestamp() - c.since), 0), 0)::double precision
    FROM counted c
$$;
REVOKE ALL ON FUNCTION waiting_work(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION waiting_work(bigint) TO recollect_app;
