-- Relations: typed edges between nodes.

-- A relation whose metadata or ordinal is put anew keeps its id. What it was stays as a row of its own, taken away by
-- the revision that changed it, so that every past state tells what it had then.
-- Directed, typed edges between lineages. graph_id is the source's graph; to_graph differs for a symlink.
CREATE TABLE relations (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    from_node uuid NOT NULL,
    to_graph uuid NOT NULL,
    to_node uuid NOT NULL,
    type text NOT NULL CHECK (length(type) BETWEEN 1 AND 256),
    metadata jsonb NOT NULL DEFAULT '{}',
    ordinal integer,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    -- version_of: of such a former version, the relation that it was. updated_at: when the properties were put, where
    -- that is after the relation was made.
    version_of uuid,
    updated_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, from_node) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE relations ALTER COLUMN tenant_id SET (n_distinct = 10);
CREATE UNIQUE INDEX relations_live ON relations (tenant_id, from_node, type, to_node) WHERE removed_revision IS NULL;
CREATE INDEX relations_live_graph ON relations (tenant_id, graph_id, id) WHERE removed_revision IS NULL;
CREATE INDEX relations_removed_incoming ON relations (tenant_id, to_node) WHERE removed_revision IS NOT NULL;
CREATE INDEX relations_compactable ON relations (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
-- The former versions of a relation: undoing and exports of the past look them up by its id, which the log names.
CREATE INDEX relations_versions ON relations (tenant_id, version_of) WHERE version_of IS NOT NULL;
-- Few edges lead into another graph; those that lead into one are found by it.
CREATE INDEX relations_symlinks ON relations (tenant_id, to_graph, id)
    WHERE removed_revision IS NULL AND to_graph <> graph_id;
-- The edges that lead from a graph into others: few, of which nothing is remembered.
CREATE INDEX relations_symlinks_from ON relations (tenant_id, graph_id, id)
    WHERE removed_revision IS NULL AND to_graph <> graph_id;
-- As passages_live (passages.sql): its condition is true of every key.
CREATE INDEX relations_outgoing ON relations (tenant_id, from_node, id) WHERE from_node IS NOT NULL;
CREATE INDEX relations_incoming ON relations (tenant_id, to_node, id) WHERE removed_revision IS NULL;

ALTER TABLE relations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON relations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON relations TO recollect_app;
