-- Duplicates that were found, those that somebody dismissed, when graphs were last compared, and facts that wait to be related.

-- Pairs of entities that a pass found alike and left as they are. Derived: a pass over the whole graph finds them
-- again.
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

ALTER TABLE duplicates ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON duplicates
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON duplicates TO recollect_app;

-- Pairs of entities that somebody said are different, however alike they are: they are neither proposed nor merged as
-- duplicates until that is taken back. Not derived: only who said it knows. likeness: that of the proposal, which is
-- made again then; null where there was none.
CREATE TABLE dismissals (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    other_id uuid NOT NULL,
    likeness double precision CHECK (likeness BETWEEN 0 AND 1),
    dismissed_by text NOT NULL,
    dismissed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, graph_id, node_id, other_id),
    CHECK (node_id < other_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, other_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX dismissals_node ON dismissals (tenant_id, node_id);
CREATE INDEX dismissals_other ON dismissals (tenant_id, other_id);

ALTER TABLE dismissals ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON dismissals
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON dismissals TO recollect_app;

-- When the entities of a graph were last compared, from end to end.
CREATE TABLE deduplications (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    finished_at timestamptz NOT NULL,
    -- From which likeness on the entities of a graph were compared: everything as alike or more was proposed or
    -- merged. Null: by a version that did not keep it.
    threshold double precision CHECK (threshold BETWEEN 0 AND 1),
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE deduplications ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON deduplications
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON deduplications TO recollect_app;

-- New facts that are to be related to the entities they are like, at least as near as threshold (a cosine), once they
-- are embedded. The worker's queue: a row goes in the transaction that relates its fact.
CREATE TABLE autolinks (
    tenant_id uuid NOT NULL,
    node_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    threshold double precision NOT NULL CHECK (threshold BETWEEN 0 AND 1),
    PRIMARY KEY (tenant_id, node_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX autolinks_graph ON autolinks (tenant_id, graph_id, node_id);

ALTER TABLE autolinks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON autolinks
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON autolinks TO recollect_app;
