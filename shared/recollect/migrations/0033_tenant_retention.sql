-- A tenant sets how long what it deleted is kept, and what it is called.

-- Days; null: as the deployment has it (RECOLLECT_RETENTION_DAYS).
ALTER TABLE tenants ADD COLUMN retention_days double precision
    CHECK (retention_days >= 1 AND retention_days <= 3650);

GRANT UPDATE (name, retention_days) ON tenants TO recollect_app;

-- Tenants with archived nodes that expired longer ago than the tenant keeps them, or than this where it does not say; ids
-- only. What a relation ties to something that lives is among them, though it stays.
CREATE OR REPLACE FUNCTION tenants_with_purgeable(retention interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.removed_revision IS NULL AND n.status = 'archived'
            AND n.expires_at < statement_timestamp() - coalesce(make_interval(secs => t.retention_days * 86400), retention)
    )
$$;
