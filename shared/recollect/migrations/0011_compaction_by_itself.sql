-- Compaction that nobody asks for, and vectors that serve nobody any more.

-- When the worker looks next whether something of a graph is beyond the retention: once a day, and not with every write,
-- so that nothing is paid for it when something is taken away, and a retention that is changed holds a day later. Graphs are
-- spread over the day.
ALTER TABLE graphs ADD COLUMN compaction_check_at timestamptz NOT NULL
    DEFAULT clock_timestamp() + interval '1 day' * random();
CREATE INDEX graphs_to_check ON graphs (tenant_id, compaction_check_at);

-- What compaction takes away, without looking at what lives.
CREATE INDEX aliases_compactable ON aliases (tenant_id, graph_id, removed_revision) WHERE removed_revision IS NOT NULL;

-- Since when a graph is served by its model and may have vectors of others; null: it has none. What was there before this
-- migration is looked through once, when the retention is over.
ALTER TABLE graph_indexes ADD COLUMN others_since timestamptz;
UPDATE graph_indexes SET others_since = statement_timestamp() WHERE model IS NOT NULL;

-- Tenants with graphs whose turn has come to be looked at: ids only.
CREATE FUNCTION tenants_with_compaction_to_check()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM graphs g WHERE g.tenant_id = t.id AND g.compaction_check_at <= statement_timestamp()
    )
$$;
REVOKE ALL ON FUNCTION tenants_with_compaction_to_check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_compaction_to_check() TO recollect_app;
