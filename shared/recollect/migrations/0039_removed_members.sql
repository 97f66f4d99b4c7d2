-- Webhooks are told of members who were removed: the audit log says so, by an entry of the transaction that removes them.

-- Tenants that may have something to tell a webhook: ids only. What was found a while ago is looked at again, since a
-- transaction may commit later than the time that it wrote.
CREATE OR REPLACE FUNCTION tenants_with_webhook_news(overlap interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhooks w
        WHERE w.tenant_id = t.id AND w.enabled AND (
            w.event_types && '{graph.changed,graph.created,graph.deleted}'::text[] AND (
                EXISTS (
                    SELECT 1 FROM graph_heads h
                    LEFT JOIN webhook_cursors c
                        ON c.tenant_id = h.tenant_id AND c.webhook_id = w.id AND c.graph_id = h.graph_id
                    WHERE h.tenant_id = w.tenant_id AND (w.graph_ids IS NULL OR h.graph_id = ANY (w.graph_ids))
                        AND (c.graph_id IS NULL
                            OR 'graph.changed' = ANY (w.event_types) AND h.revision > c.revision)
                ) OR EXISTS (
                    SELECT 1 FROM webhook_cursors c
                    WHERE c.tenant_id = w.tenant_id AND c.webhook_id = w.id AND NOT EXISTS (
                        SELECT 1 FROM graphs g WHERE g.tenant_id = c.tenant_id AND g.id = c.graph_id
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
