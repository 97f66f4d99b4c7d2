-- Observations: statements about an entity.

-- Short statements attached to an entity. expires_at: a memory may end although its entity goes on.
CREATE TABLE observations (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    content text NOT NULL,
    thread text,
    said_at timestamptz,
    expires_at timestamptz,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    -- kind, tags, importance, source and metadata of its own; empty: it says nothing of the kind, and its entity's
    -- hold. An outdated one is kept, and told only where outdated memories are asked for. A change closes its row and
    -- adds another of the same id: each row is a version, from added_revision until removed_revision. first_revision:
    -- that of its first version, where this is a later one, which keeps its place among what its entity says. reason:
    -- why it was last changed, if told.
    kind text,
    tags text[] NOT NULL DEFAULT '{}',
    importance double precision CHECK (importance BETWEEN 0 AND 10),
    source text,
    metadata jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'outdated')),
    reason text,
    first_revision bigint,
    -- The versions of an observation have numbers, as those of a node have: a writer says on which one its change is
    -- based, so that of several changes of one version only the first is written.
    version bigint NOT NULL DEFAULT 1,
    -- said_offset: the minutes by which the clock of who said it was ahead of UTC; null: not known, or UTC.
    said_offset smallint,
    PRIMARY KEY (tenant_id, id, added_revision),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE observations ALTER COLUMN tenant_id SET (n_distinct = 10);
-- By hash, since a text may be longer than an index entry can be; also the way to all observations of a node.
CREATE INDEX observations_live ON observations (tenant_id, node_id, hashtextextended(content, 0))
    WHERE removed_revision IS NULL;
CREATE INDEX observations_trigrams ON observations USING gin (graph_id, content gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;
-- The few texts that are not in normal form NFC: substrings of them are found in that form (holds).
CREATE INDEX observations_decomposed_trigrams ON observations USING gin (graph_id, plain_text(content) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND is_decomposed(content);
-- A fuzzy search looks at texts about as long as its query: of observations those are few, of names most. It begins
-- with the graph and leaves the tenant to the rows, as the GIN indexes do: without statistics PostgreSQL takes all
-- indexes that begin with the tenant for equally good, and would read a tenant's observations for each one that is
-- looked up by its node.
CREATE INDEX observations_length ON observations (graph_id, length(lower(content)))
    WHERE removed_revision IS NULL;
CREATE INDEX observations_expiring ON observations (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL;
-- What compaction takes away, without looking at what lives.
CREATE INDEX observations_compactable ON observations (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
-- Few: what is kept but not told.
CREATE INDEX observations_outdated ON observations (tenant_id, graph_id)
    WHERE status = 'outdated' AND removed_revision IS NULL;
-- As passages_live (passages.sql): its condition is true of every key.
CREATE INDEX observations_of_node ON observations (tenant_id, node_id, coalesce(first_revision, added_revision), id)
    WHERE node_id IS NOT NULL;
-- list_tags and describe_schema count the kinds and tags that observations have themselves, and read no other
-- observations.
CREATE INDEX observations_labelled ON observations (tenant_id, graph_id, id)
    WHERE removed_revision IS NULL AND (kind IS NOT NULL OR tags <> '{}');

ALTER TABLE observations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON observations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON observations TO recollect_app;

-- Observations for searching: see search_nodes (nodes.sql).
CREATE VIEW search_observations AS
    SELECT * FROM observations
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_observations TO recollect_app;
