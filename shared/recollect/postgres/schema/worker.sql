-- Which tenants have work of a kind for the worker, and how much waits: ids and numbers only. The functions run as
-- their owner, since no tenant is known yet. Each takes and returns no more than its one purpose needs, and has an
-- attack test.

-- Tenants whose passages wait for the worker: ids only.
CREATE FUNCTION tenants_with_pending_passages()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, public, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND NOT p.settled AND p.removed_revision IS NULL
    )
$$;

-- Tenants that have a job to be worked on or to be removed: ids only. Jobs of a tenant that is read-only wait.
CREATE FUNCTION tenants_with_due_jobs()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND NOT t.read_only AND t.id IN (
        SELECT j.tenant_id FROM jobs j
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT j.tenant_id FROM jobs j WHERE j.expires_at <= statement_timestamp()
    )
    ORDER BY t.id
$$;

-- Nodes or observations whose time has come and that are not archived, or taken away, yet.
CREATE FUNCTION tenants_with_expired()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND (EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.expires_at <= statement_timestamp() AND n.removed_revision IS NULL
            AND n.status <> 'archived'
    ) OR EXISTS (
        SELECT 1 FROM observations o
        WHERE o.tenant_id = t.id AND o.expires_at <= statement_timestamp() AND o.removed_revision IS NULL
    ))
$$;

-- Graphs whose configuration asks for duplicates, and that were not compared for as long as it says. The
-- configuration is text of tenants: whatever it holds, it must not fail here (numeric takes every number of JSON).
CREATE FUNCTION tenants_with_deduplication_due()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM graphs g
        LEFT JOIN deduplications d ON d.tenant_id = g.tenant_id AND d.graph_id = g.id
        WHERE g.tenant_id = t.id AND g.metadata #>> '{dedup,mode}' IN ('propose', 'merge')
            AND (d.finished_at IS NULL OR d.finished_at <= statement_timestamp() - interval '1 hour' * CASE
                WHEN jsonb_typeof(g.metadata #> '{dedup,every_hours}') = 'number'
                THEN least(greatest((g.metadata #>> '{dedup,every_hours}')::numeric, 1), 8760)::double precision ELSE 24 END)
    )
$$;

-- Tenants that have facts to be related, and embedded: ids only.
CREATE FUNCTION tenants_with_autolinks()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM autolinks a
        WHERE a.tenant_id = t.id AND NOT EXISTS (
            SELECT 1 FROM passages p
            WHERE p.tenant_id = a.tenant_id AND p.node_id = a.node_id AND p.removed_revision IS NULL AND NOT p.settled
        )
    )
$$;

-- Tenants with archived nodes that expired longer ago than the tenant keeps them, or than this where it does not say;
-- ids only. What a relation ties to something that lives is among them, though it stays.
CREATE FUNCTION tenants_with_purgeable(retention interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.removed_revision IS NULL AND n.status = 'archived'
            AND n.expires_at < statement_timestamp() - coalesce(make_interval(secs => t.retention_days * 86400), retention)
    )
$$;

-- Tenants with graphs whose turn has come to be looked at: ids only.
CREATE FUNCTION tenants_with_compaction_to_check()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM graphs g WHERE g.tenant_id = t.id AND g.compaction_check_at <= statement_timestamp()
    )
$$;

-- Tenants with usage that is older than it is kept, ids only.
CREATE FUNCTION tenants_with_old_usage(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM usage_hourly u WHERE u.tenant_id = t.id AND u.hour < statement_timestamp() - kept
    )
$$;

-- Tenants that may have something to tell a webhook: ids only. What was found a while ago is looked at again, since a
-- transaction may commit later than the time that it wrote. A graph has one cursor of a webhook, which is looked up
-- for each graph that was written or erased, and graphs are read in the order in which they were written, whatever
-- PostgreSQL knows of these tables: hence the two settings and OFFSET 0. A webhook that has more to collect than one
-- look takes keeps its looked_at.
CREATE FUNCTION tenants_with_webhook_news(overlap interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp SET enable_seqscan = off
SET enable_sort = off
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhooks w
        WHERE w.tenant_id = t.id AND w.enabled AND (
            w.event_types && '{graph.changed,graph.created,graph.deleted}'::text[] AND (
                EXISTS (
                    SELECT 1 FROM (
                        SELECT g.tenant_id, g.graph_id, g.revision FROM graph_heads g
                        WHERE g.tenant_id = w.tenant_id
                            AND g.written_around > w.looked_at - overlap - interval '1 minute'
                        ORDER BY g.tenant_id, g.written_around
                        OFFSET 0
                    ) h
                    WHERE (w.graph_ids IS NULL OR h.graph_id = ANY (w.graph_ids))
                        AND h.revision > coalesce((
                            SELECT CASE WHEN 'graph.changed' = ANY (w.event_types) THEN c.revision ELSE h.revision END
                            FROM webhook_cursors c
                            WHERE c.tenant_id = h.tenant_id AND c.webhook_id = w.id AND c.graph_id = h.graph_id
                        ), -1)
                ) OR EXISTS (
                    SELECT 1 FROM audit_log a
                    WHERE a.tenant_id = w.tenant_id AND a.at > w.looked_at - overlap AND a.action = 'graph.erased' AND (
                        SELECT true FROM webhook_cursors c
                        WHERE c.tenant_id = a.tenant_id AND c.webhook_id = w.id
                            AND c.graph_id = substr(a.objects[1], length('graph:') + 1)::uuid
                    )
                )
            )
            OR w.event_types && '{job.finished,job.failed}'::text[] AND EXISTS (
                SELECT 1 FROM jobs j WHERE j.tenant_id = w.tenant_id AND j.finished_at > w.looked_at - overlap
            )
            OR w.event_types && '{key.created,key.revoked}'::text[] AND EXISTS (
                SELECT 1 FROM api_keys k
                WHERE k.tenant_id = w.tenant_id
                    AND (k.created_at > w.looked_at - overlap OR k.revoked_at > w.looked_at - overlap)
            )
            OR 'member.joined' = ANY (w.event_types) AND EXISTS (
                SELECT 1 FROM members m WHERE m.tenant_id = w.tenant_id AND m.created_at > w.looked_at - overlap
            )
            OR 'member.removed' = ANY (w.event_types) AND EXISTS (
                SELECT 1 FROM audit_log a
                WHERE a.tenant_id = w.tenant_id AND a.at > w.looked_at - overlap AND a.action = 'member.removed'
            )
        )
    )
    ORDER BY t.id
$$;

-- Tenants that have a delivery to be sent now: ids only.
CREATE FUNCTION tenants_with_due_deliveries()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhooks w
        JOIN webhook_deliveries d ON d.tenant_id = w.tenant_id AND d.webhook_id = w.id
        WHERE w.tenant_id = t.id AND w.enabled AND d.next_attempt_at <= statement_timestamp()
            AND (d.claimed_until IS NULL OR d.claimed_until < statement_timestamp())
    )
    ORDER BY t.id
$$;

-- Tenants with deliveries that are older than they are kept: ids only.
CREATE FUNCTION tenants_with_old_deliveries(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhook_deliveries d WHERE d.tenant_id = t.id AND d.created_at < statement_timestamp() - kept
    )
    ORDER BY t.id
$$;

-- Active tenants with entries that are older than they are kept, ids only.
CREATE FUNCTION tenants_with_old_audit(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM audit_log a WHERE a.tenant_id = t.id AND a.at < statement_timestamp() - kept
    )
$$;

-- Active tenants with keys that have expired, ids only.
CREATE FUNCTION tenants_with_expired_idempotency_keys()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM idempotency_keys k WHERE k.tenant_id = t.id AND k.expires_at <= statement_timestamp()
    )
$$;

-- For each queue: how many wait, counted up to `most`, and how long the oldest has waited, in seconds. What suspended
-- tenants have does not wait for a worker. An id of a passage (UUIDv7) begins with the milliseconds at which it was
-- made.
CREATE FUNCTION waiting_work(most bigint)
RETURNS TABLE (queue text, waiting bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    WITH due AS (
        SELECT 'jobs' AS queue, j.next_attempt_at AS since
        FROM jobs j
        JOIN tenants_staying t ON t.id = j.tenant_id AND t.status = 'active'
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT 'deliveries', d.next_attempt_at
        FROM webhook_deliveries d
        JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND w.enabled
        JOIN tenants_staying t ON t.id = d.tenant_id AND t.status = 'active'
        WHERE d.next_attempt_at <= statement_timestamp()
            AND (d.claimed_until IS NULL OR d.claimed_until < statement_timestamp())
    ), counted AS (
        SELECT 'passages' AS queue, (
            SELECT count(*) FROM (
                SELECT 1 FROM passages p
                JOIN tenants_staying t ON t.id = p.tenant_id AND t.status = 'active'
                WHERE NOT p.settled AND p.embedding_model IS NULL AND p.removed_revision IS NULL
                LIMIT most
            ) AS found
        ) AS waiting, (
            SELECT to_timestamp(min(('x' || left(replace(first.id::text, '-', ''), 12))::bit(48)::bigint) / 1000.0)
            FROM tenants_staying t
            CROSS JOIN LATERAL (
                SELECT p.id FROM passages p
                WHERE p.tenant_id = t.id AND NOT p.settled AND p.embedding_model IS NULL AND p.removed_revision IS NULL
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

-- Tenants with labels or passages to analyse anew: ids only.
CREATE FUNCTION tenants_with_other_words()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND (
        EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND p.words_version < 4)
        OR EXISTS (
            SELECT 1 FROM nodes n
            WHERE n.tenant_id = t.id AND n.labels_version < 2 AND n.removed_revision IS NULL
                AND (n.summary IS NOT NULL OR n.tags <> '{}')
        )
    )
$$;

-- What these tenants use of what plans limit, for the pages of operators: numbers only, of 200 tenants at most.
-- day: the midnight (UTC) at which the day began whose embeddings count.
CREATE FUNCTION use_of_tenants(tenant_ids uuid[], day timestamptz)
RETURNS TABLE (tenant_id uuid, graphs bigint, nodes_per_graph bigint, observations bigint, stored_bytes bigint,
    embeddings_per_day bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, stored.graphs, stored.nodes, stored.observations, stored.bytes, embedded.passages
    FROM tenants_here t
    CROSS JOIN LATERAL (
        SELECT count(*) AS graphs, coalesce(max(h.entities + h.facts + h.placeholders), 0)::bigint AS nodes,
            coalesce(sum(h.observations), 0)::bigint AS observations,
            coalesce(sum(counted_bytes(h)), 0)::bigint AS bytes
        FROM graph_heads h WHERE h.tenant_id = t.id
    ) AS stored
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(u.passages), 0)::bigint AS passages FROM usage_hourly u
        WHERE u.tenant_id = t.id AND u.hour >= day AND u.hour < day + interval '1 day' AND u.kind = 'work'
            AND u.name = 'embed_passages'
    ) AS embedded
    WHERE t.id = ANY (tenant_ids[1:200])
$$;

-- Jobs of all tenants that failed since then, by their kind and the code of the error, the most frequent first: numbers
-- only. The application can store any text as a code; one that is no code is left out.
CREATE FUNCTION failed_work(since timestamptz)
RETURNS TABLE (kind text, error_code text, failed bigint, last_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT j.kind, CASE WHEN j.error_code ~ '^[a-z0-9_]{1,64}$' THEN j.error_code ELSE '' END, count(*),
        max(j.finished_at)
    FROM tenants_here t
    JOIN jobs j ON j.tenant_id = t.id AND j.status = 'failed' AND j.finished_at >= since
    GROUP BY 1, 2
    ORDER BY 3 DESC, 1, 2
    LIMIT 100
$$;
