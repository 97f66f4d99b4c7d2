-- What has expired is deleted after the tenant's retention: the sweep finds whose is due.

-- Few: what is archived for good, or waits for its retention.
CREATE INDEX nodes_to_purge ON nodes (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL AND status = 'archived';

-- Tenants with archived nodes that expired longer ago than this, ids only. What a relation ties to something that lives is
-- among them, though it stays.
CREATE FUNCTION tenants_with_purgeable(retention interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.expires_at < statement_timestamp() - retention AND n.removed_revision IS NULL
            AND n.status = 'archived'
    )
$$;

REVOKE ALL ON FUNCTION tenants_with_purgeable(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_purgeable(interval) TO recollect_app;
