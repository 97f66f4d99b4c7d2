-- The sweep for webhooks compared every webhook with every graph of its tenant. Now it compares graphs that were written
-- since the webhook's last look, and finds deleted graphs in the audit log.

-- When a graph was last written, give or take a minute. An index on `at` would take part in every write of a graph; this
-- column changes once a minute at most, so that the other updates of the row stay heap-only. now() is stored once for all
-- rows that there are: at its first look, each webhook is compared with all graphs once more.
ALTER TABLE graph_heads ADD COLUMN written_around timestamptz NOT NULL DEFAULT now();
ALTER TABLE graph_heads ALTER COLUMN written_around SET DEFAULT clock_timestamp();
CREATE INDEX graph_heads_written ON graph_heads (tenant_id, written_around);

-- A trigger, since gateways of the previous release do not know the column. Its condition alone is evaluated for most writes.
CREATE FUNCTION note_written_around()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.written_around := NEW.at;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION note_written_around() FROM PUBLIC;
CREATE TRIGGER written_around BEFORE UPDATE ON graph_heads FOR EACH ROW
    WHEN (NEW.at > OLD.written_around + interval '1 minute')
    EXECUTE FUNCTION note_written_around();

-- As before, with what is said above. A graph has one cursor of a webhook, which is looked up for each graph that was written
-- or erased, and graphs are read in the order in which they were written, whatever PostgreSQL knows of these tables: hence the
-- two settings and OFFSET 0. A webhook that has more to collect than one look takes keeps its looked_at.
CREATE OR REPLACE FUNCTION tenants_with_webhook_news(overlap interval)
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
