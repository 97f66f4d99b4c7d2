-- What has expired and waits to be archived, what a comparison of entities proposed, and how far it came.

-- What waits for the sweep: looked for in every tenant, every few seconds.
CREATE INDEX nodes_to_archive ON nodes (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL AND status <> 'archived';
CREATE INDEX observations_expiring ON observations (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL;

-- Pairs of entities that a pass found alike and left as they are. Derived: a pass over the whole graph finds them again.
CREATE TABLE duplicates (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    other_id uuid NOT NULL,
    likeness double precision NOT NULL CHECK (likeness BETWEEN 0 AND 1),
    found_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, graph_id, node_id, other_id),
    CHECK (node_id < other_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, other_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX duplicates_node ON duplicates (tenant_id, node_id);
CREATE INDEX duplicates_other ON duplicates (tenant_id, other_id);

-- When the entities of a graph were last compared, from end to end.
CREATE TABLE deduplications (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    finished_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
);

DO $$
DECLARE tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['duplicates', 'deduplications']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant_isolation ON %I USING (tenant_id = (SELECT nullif(current_setting(
            ''recollect.tenant_id'', true), '''')::uuid))', tenant_table);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON duplicates, deduplications TO recollect_app;

-- Tenants that have work of a kind, for the sweep: ids only.

-- Nodes or observations whose time has come and that are not archived, or taken away, yet.
CREATE FUNCTION tenants_with_expired()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND (EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.expires_at <= statement_timestamp() AND n.removed_revision IS NULL
            AND n.status <> 'archived'
    ) OR EXISTS (
        SELECT 1 FROM observations o
        WHERE o.tenant_id = t.id AND o.expires_at <= statement_timestamp() AND o.removed_revision IS NULL
    ))
$$;

-- Graphs whose configuration asks for duplicates, and that were not compared for as long as it says. The configuration is
-- text of tenants: whatever it holds, it must not fail here (numeric takes every number of JSON).
CREATE FUNCTION tenants_with_deduplication_due()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM graphs g
        LEFT JOIN deduplications d ON d.tenant_id = g.tenant_id AND d.graph_id = g.id
        WHERE g.tenant_id = t.id AND g.metadata #>> '{dedup,mode}' IN ('propose', 'merge')
            AND (d.finished_at IS NULL OR d.finished_at <= statement_timestamp() - interval '1 hour' * CASE
                WHEN jsonb_typeof(g.metadata #> '{dedup,every_hours}') = 'number'
                THEN least(greatest((g.metadata #>> '{dedup,every_hours}')::numeric, 1), 8760)::double precision ELSE 24 END)
    )
$$;

REVOKE ALL ON FUNCTION tenants_with_expired(), tenants_with_deduplication_due() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_expired(), tenants_with_deduplication_due() TO recollect_app;
