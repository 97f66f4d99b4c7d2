-- Graphs: their settings, counters, search indexes and the log of changes.
--
-- Nothing is overwritten: rows of a graph carry the revision that added them and the one that removed them.

CREATE TABLE graphs (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name ~ '^[A-Za-z0-9_@-]{1,128}$'),
    conflict_policy text NOT NULL DEFAULT 'lww' CHECK (conflict_policy IN ('lww', 'manual')),
    kind_whitelist text[],
    metadata jsonb NOT NULL DEFAULT '{}',
    limits jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    -- The oldest revision that can still be read, and when it was written. 0: all of them.
    compacted_revision bigint NOT NULL DEFAULT 0,
    compacted_at timestamptz,
    -- When the worker looks next whether something of a graph is beyond the retention: once a day, and not with every
    -- write, so that nothing is paid for it when something is taken away, and a retention that is changed holds a day
    -- later. Graphs are spread over the day.
    compaction_check_at timestamptz NOT NULL
        DEFAULT clock_timestamp() + interval '1 day' * random(),
    time_zone text,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
);
CREATE INDEX graphs_to_check ON graphs (tenant_id, compaction_check_at);

ALTER TABLE graphs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON graphs
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON graphs TO recollect_app;
GRANT INSERT ON graphs TO recollect_operator;

-- One narrow row a graph: the write lock, the newest revision and its time, and exact counts of what is live.
CREATE TABLE graph_heads (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    entities bigint NOT NULL DEFAULT 0,
    facts bigint NOT NULL DEFAULT 0,
    placeholders bigint NOT NULL DEFAULT 0,
    observations bigint NOT NULL DEFAULT 0,
    relations bigint NOT NULL DEFAULT 0,
    -- stored_bytes: of the text of all versions of its nodes, observations and relations, history included, in UTF-8.
    -- Changed by triggers alone.
    stored_bytes bigint NOT NULL DEFAULT 0,
    -- When a graph was last written, give or take a minute. An index on `at` would take part in every write of a
    -- graph; this column changes once a minute at most, so that the other updates of the row stay heap-only.
    written_around timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- row_bytes: of the rows of the graph besides their text, changed by triggers alone.
    row_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    fillfactor = 50
);
CREATE INDEX graph_heads_written ON graph_heads (tenant_id, written_around);

ALTER TABLE graph_heads ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON graph_heads
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON graph_heads TO recollect_app;
GRANT INSERT ON graph_heads TO recollect_operator;

-- Raised by the worker whenever vectors, windows or term frequencies changed: part of every search cache key.
CREATE TABLE graph_indexes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    index_epoch bigint NOT NULL DEFAULT 0,
    -- passages_counted: how many live passages the term counts are of, when the graph had memories_counted memories.
    -- vector_model, vector_dimensions: of the graph's vector index, where it has one.
    passages_counted bigint NOT NULL DEFAULT 0,
    memories_counted bigint NOT NULL DEFAULT 0,
    vector_model text,
    vector_dimensions integer,
    -- model: whose vectors a graph is searched by, and what its new passages are embedded by, while an embedder of
    -- that name is at hand; null until its first passage is embedded.
    model text,
    -- Since when a graph is served by its model and may have vectors of others; null: it has none.
    others_since timestamptz,
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
) WITH (
    fillfactor = 50
);

ALTER TABLE graph_indexes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON graph_indexes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON graph_indexes TO recollect_app;
GRANT INSERT ON graph_indexes TO recollect_operator;

-- The index_epoch after this one, which the graph never had before: microseconds since 1970, and at least one more than
-- the last. Commits of workers do not wait for the disk, so that a crash may lose some: a plain counter would then reach
-- the same number again with other rows.
CREATE FUNCTION next_index_epoch(last_epoch bigint)
RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(last_epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- The ordered log of a graph: which operation, by whom, on what ids. Never holds stored text or names.
CREATE TABLE changes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    revision bigint NOT NULL,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    operation text NOT NULL,
    ids uuid[] NOT NULL,
    counts jsonb NOT NULL,
    PRIMARY KEY (tenant_id, graph_id, revision),
    -- A graph's log and counters go with it, and only with it: nobody but their owner may delete a change.
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0, -- see nodes.sql
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX changes_at ON changes (tenant_id, graph_id, at);

ALTER TABLE changes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON changes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
-- The log is never rewritten by gateway or worker.
GRANT SELECT, INSERT ON changes TO recollect_app;

-- Note when a graph was written, give or take a minute. For most writes, the trigger's condition alone is evaluated.
CREATE FUNCTION note_written_around()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.written_around := NEW.at;
    RETURN NEW;
END $$;

CREATE TRIGGER written_around BEFORE UPDATE ON graph_heads FOR EACH ROW
    WHEN (NEW.at > OLD.written_around + interval '1 minute')
    EXECUTE FUNCTION note_written_around();
