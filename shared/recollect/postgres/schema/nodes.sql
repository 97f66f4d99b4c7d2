-- Nodes (entities, facts, placeholders), their versions and aliases, and how they are found by name.

-- The head of each lineage: its newest version, or the tombstone of a deleted one.
CREATE TABLE nodes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    version integer NOT NULL,
    version_id uuid NOT NULL,
    name text CHECK (length(name) BETWEEN 1 AND 512),
    kind text,
    content text,
    summary text,
    tags text[] NOT NULL DEFAULT '{}',
    importance double precision CHECK (importance BETWEEN 0 AND 10),
    metadata jsonb NOT NULL DEFAULT '{}',
    parent_id uuid,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'outdated', 'archived')),
    source text,
    thread text,
    said_at timestamptz,
    freshness_at timestamptz,
    ttl_days double precision,
    expires_at timestamptz,
    last_dedup_at timestamptz,
    placeholder boolean NOT NULL DEFAULT false,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL,
    -- When an entity last changed by observations that compaction has taken away: the past is told as it was.
    changed_before timestamptz,
    -- Why a version was written, where its writer told it. It holds until another is told or the status changes.
    reason text,
    name_key text,
    said_offset smallint,
    -- labels: the words of the summary and, with the weight B, of the tags; null: there are neither, or they were not
    -- analysed yet. labels_version: of the analysis that made them.
    labels tsvector,
    labels_version smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    -- Foreign keys of what writes of a graph add are checked once, before the commit, and not after each statement: a
    -- row that is added and changed in one transaction is checked once, and the checks are planned once a session
    -- (`end_statements` of transactions).
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    fillfactor = 80,
    -- Statistics of large tables are gathered after so many rows, not after a tenth of the table: a tenth of ten
    -- million is a tenant that has worked for weeks.
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
-- A plan that is made once for any tenant expects an average one, which of thousands is tiny: where PostgreSQL (15
-- and 16, which take each of a list of keys for a search of its own) expected fewer rows of it than keys, it read all
-- of the tenant's, of a large one, too. So it takes each for a tenth of a table: to expect too many has rows looked
-- up by their keys, which is right for few as well.
ALTER TABLE nodes ALTER COLUMN tenant_id SET (n_distinct = 10);
CREATE UNIQUE INDEX nodes_live_name ON nodes (tenant_id, graph_id, name)
    WHERE removed_revision IS NULL AND name IS NOT NULL;
CREATE INDEX nodes_live ON nodes (tenant_id, graph_id, created_at, id) WHERE removed_revision IS NULL;
CREATE INDEX nodes_live_fact ON nodes (tenant_id, graph_id, hashtextextended(content, 0))
    WHERE removed_revision IS NULL AND name IS NULL;
-- Nodes that recall may have to leave out.
CREATE INDEX nodes_unusual ON nodes (tenant_id, graph_id, id) WHERE removed_revision IS NULL
    AND (status <> 'active' OR expires_at IS NOT NULL OR freshness_at IS NOT NULL);
-- GIN lists of pending entries are kept short, since a search reads them from end to end: with the default of 4 MB,
-- searches took four times as long after 2,000 new entities (measured). Shorter still, and batches of writes pay for
-- it.
CREATE INDEX nodes_trigrams ON nodes USING gin (graph_id, name gin_trgm_ops, kind gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL;
-- Names are recognised in texts whatever their case.
CREATE INDEX nodes_live_any_case ON nodes (tenant_id, graph_id, lower(name))
    WHERE removed_revision IS NULL AND name IS NOT NULL;
CREATE INDEX nodes_live_parent ON nodes (tenant_id, parent_id) WHERE removed_revision IS NULL AND parent_id IS NOT NULL;
CREATE INDEX nodes_expiring ON nodes (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX nodes_expiring_live ON nodes (tenant_id, graph_id, expires_at)
    WHERE removed_revision IS NULL AND expires_at IS NOT NULL;
CREATE INDEX nodes_tag_trigrams ON nodes USING gin (graph_id, joined(tags) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL AND tags <> '{}';
-- The few names, kinds and tags that are not in normal form NFC: substrings of them are found in that form (holds).
CREATE INDEX nodes_decomposed_trigrams ON nodes
    USING gin (graph_id, plain_text(name) gin_trgm_ops, plain_text(kind) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL
        AND (is_decomposed(name) OR is_decomposed(kind));
CREATE INDEX nodes_decomposed_tag_trigrams ON nodes USING gin (graph_id, plain_text(joined(tags)) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL AND tags <> '{}'
        AND is_decomposed(joined(tags));
-- Names and kinds without their accents, for fuzzy searches. Others are as nodes_trigrams has them.
CREATE INDEX nodes_folded_trigrams ON nodes USING gin (graph_id,
        nullif(folded_name(name), lower(name)) gin_trgm_ops, nullif(folded_name(kind), lower(kind)) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL
        AND (octet_length(name) > length(name) OR octet_length(kind) > length(kind));
-- What waits for the sweep: looked for in every tenant, every few seconds.
CREATE INDEX nodes_to_archive ON nodes (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL AND status <> 'archived';
CREATE INDEX nodes_compactable ON nodes (tenant_id, graph_id, removed_revision) WHERE removed_revision IS NOT NULL;
-- Few: what is archived for good, or waits for its retention.
CREATE INDEX nodes_to_purge ON nodes (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL AND status = 'archived';
-- Few: how many of a graph's entities a ranked search leaves out.
CREATE INDEX nodes_archived ON nodes (tenant_id, graph_id)
    WHERE status = 'archived' AND removed_revision IS NULL AND name IS NOT NULL AND NOT placeholder;
-- A page of all nodes, and of all entities, in the order in which they are listed. What decides whether one is listed
-- now stands in the index, so that those before the page are passed over without a look at their rows.
CREATE INDEX nodes_listed ON nodes (tenant_id, graph_id, id) INCLUDE (expires_at)
    WHERE removed_revision IS NULL AND NOT placeholder;
CREATE INDEX nodes_entities ON nodes (tenant_id, graph_id, created_at, id) INCLUDE (expires_at, status)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL;
CREATE INDEX nodes_live_key ON nodes (tenant_id, graph_id, name_key, id)
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
CREATE INDEX nodes_live_key_any_case ON nodes (tenant_id, graph_id, lower(name_key))
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
-- Other names differ from their look-alike key in case at most: nodes_live_any_case finds them.
CREATE INDEX nodes_live_look_alikes ON nodes (tenant_id, graph_id, nullif(look_alike_key(name), lower(name)))
    WHERE removed_revision IS NULL AND nullif(look_alike_key(name), lower(name)) IS NOT NULL;
-- Other names are their folded ones, but for case: nodes_live_any_case finds them.
CREATE INDEX nodes_live_folded ON nodes (tenant_id, graph_id, nullif(folded_name(name), lower(name)))
    WHERE removed_revision IS NULL AND nullif(folded_name(name), lower(name)) IS NOT NULL;
CREATE INDEX nodes_labels_in_words ON nodes USING gin (graph_id, labels) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND labels IS NOT NULL;
-- The worker's queue of labels to analyse anew, empty once all are; until then these are found by English words.
CREATE INDEX nodes_other_labels ON nodes (tenant_id, id)
    WHERE labels_version < 2 AND removed_revision IS NULL AND (summary IS NOT NULL OR tags <> '{}');
CREATE INDEX nodes_labels ON nodes USING gin (graph_id, label_words(coalesce(summary, '') || ' ' || joined(tags)))
    WITH (gin_pending_list_limit = 128)
    WHERE labels_version < 2 AND removed_revision IS NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}');

ALTER TABLE nodes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON nodes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON nodes TO recollect_app;

-- Every version of every node, each with every field.
CREATE TABLE node_versions (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    version integer NOT NULL,
    id uuid NOT NULL,
    name text,
    kind text,
    content text,
    summary text,
    tags text[] NOT NULL,
    importance double precision,
    metadata jsonb NOT NULL,
    parent_id uuid,
    status text NOT NULL,
    source text,
    thread text,
    said_at timestamptz,
    freshness_at timestamptz,
    ttl_days double precision,
    expires_at timestamptz,
    last_dedup_at timestamptz,
    placeholder boolean NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    based_on integer,
    superseded_by uuid,
    added_revision bigint NOT NULL,
    superseded_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    -- Since when the lineage is told to be: a merge makes it as old as the oldest that it took in, and the past stays
    -- as it was told. Null: since the node's created_at.
    began_at timestamptz,
    -- sibling: another version was written beside it while it was a head. While it is not superseded it is still one,
    -- below the highest.
    sibling boolean NOT NULL DEFAULT false,
    reason text,
    name_key text,
    said_offset smallint,
    -- Versions keep the words that they had, for searches of the past.
    labels tsvector,
    labels_version smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, node_id, version),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE node_versions ALTER COLUMN tenant_id SET (n_distinct = 10);
-- Walks of the past ask at every level what hung below a node, and what had expired.
CREATE INDEX node_versions_parent ON node_versions (tenant_id, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX node_versions_expiring ON node_versions (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX node_versions_compactable ON node_versions (tenant_id, graph_id, superseded_revision)
    WHERE superseded_revision IS NOT NULL;
CREATE INDEX node_versions_siblings ON node_versions (tenant_id, graph_id, node_id, version) WHERE sibling;
-- As passages_live, its conditions are true of every key. What goes through the versions of a graph says so of the
-- graph.
CREATE INDEX node_versions_named ON node_versions (tenant_id, graph_id, name) WHERE name IS NOT NULL;
CREATE INDEX node_versions_of_graph ON node_versions (tenant_id, graph_id, node_id) WHERE graph_id IS NOT NULL;
-- What an author wrote that is current, in the order in which lists of nodes have it. As passages_live, its conditions
-- say so of the author.
CREATE INDEX node_versions_of_author ON node_versions (tenant_id, graph_id, created_by, node_id, version DESC)
    WHERE superseded_revision IS NULL AND created_by IS NOT NULL;
CREATE UNIQUE INDEX node_versions_id ON node_versions (tenant_id, id) WHERE id IS NOT NULL;
CREATE INDEX node_versions_keyed ON node_versions (tenant_id, graph_id, name_key) WHERE name_key IS NOT NULL;

ALTER TABLE node_versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON node_versions
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON node_versions TO recollect_app;

-- Names that an entity had before a merge, by which it is still found.
CREATE TABLE aliases (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 512),
    added_revision bigint NOT NULL,
    removed_revision bigint,
    name_key text,
    PRIMARY KEY (tenant_id, node_id, name, added_revision),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
-- What compaction takes away, without looking at what lives.
CREATE INDEX aliases_compactable ON aliases (tenant_id, graph_id, removed_revision) WHERE removed_revision IS NOT NULL;
-- What looks for names that a text may tell is planned once a session, as what is looked up by keys: planning took ten
-- times as long as looking. Each name is looked up by itself (ADR 32): so no plan that was made for tenants of which
-- most are small goes through all of a large graph.
CREATE INDEX aliases_live_name ON aliases (tenant_id, graph_id, name) WHERE removed_revision IS NULL;
CREATE INDEX aliases_live_any_case ON aliases (tenant_id, graph_id, lower(name)) WHERE removed_revision IS NULL;
CREATE INDEX aliases_live_key ON aliases (tenant_id, graph_id, name_key)
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
CREATE INDEX aliases_live_key_any_case ON aliases (tenant_id, graph_id, lower(name_key))
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;

ALTER TABLE aliases ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON aliases
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON aliases TO recollect_app;

-- When a node was first written; null where there is none.
CREATE FUNCTION node_created_at(tenant uuid, node uuid)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT n.created_at FROM nodes n WHERE n.tenant_id = tenant AND same_key(n.id, node) ORDER BY n.id LIMIT 1
$$;

-- Live entities that have one of these names, or had it before a merge: exactly, or in small letters (lowered) where
-- the name has min_length characters or more; by the names and by their keys. The phrases come as keys, too. At most
-- `most`, oldest first.
CREATE FUNCTION entities_named(tenant uuid, graph uuid, names text[], lowered text[], min_length bigint,
    most bigint)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT /* search.entities_named */ n.id
        FROM (
            SELECT e.id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
                    AND same_key(name, w.name)
                ORDER BY name LIMIT 1
            ) AS e
            UNION
            SELECT e.id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name_key IS NOT NULL
                    AND same_key(name_key, w.name)
                ORDER BY name_key, id LIMIT most
            ) AS e
            UNION
            SELECT e.id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
                    AND same_key(lower(name), w.name) AND length(name) >= min_length
                    AND NOT placeholder AND status <> 'archived'
                    AND coalesce(expires_at > statement_timestamp(), true)
                ORDER BY lower(name), id LIMIT most
            ) AS e
            UNION
            SELECT e.id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name_key IS NOT NULL
                    AND same_key(lower(name_key), w.name) AND length(name_key) >= min_length
                    AND NOT placeholder AND status <> 'archived'
                    AND coalesce(expires_at > statement_timestamp(), true)
                ORDER BY lower(name_key), id LIMIT most
            ) AS e
            UNION
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND same_key(name, w.name)
                ORDER BY name OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND same_key(name_key, w.name)
                ORDER BY name_key OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND same_key(lower(name), w.name) AND length(name) >= min_length
                ORDER BY lower(name) OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND same_key(lower(name_key), w.name) AND length(name_key) >= min_length
                ORDER BY lower(name_key) OFFSET 0
            ) AS a
        ) AS i
        CROSS JOIN LATERAL (
            SELECT id, removed_revision, placeholder, status, expires_at FROM search_nodes
            WHERE tenant_id = tenant AND same_key(id, i.id)
            ORDER BY id LIMIT 1
        ) AS n
        WHERE n.removed_revision IS NULL AND NOT n.placeholder AND n.status <> 'archived' AND is_current(n.expires_at)
        ORDER BY n.id
        LIMIT most
    );
END $$;

-- How many live edges of each type a graph has between two of its own nodes that have names, whether or not these
-- have expired: its revision alone decides that. Nodes and edges are hashed (enable_nestloop): to look up both ends
-- of each edge takes five times as long, which a planner that expects few edges does not know.
CREATE FUNCTION edges_between_names(tenant uuid, graph uuid)
RETURNS TABLE (type text, edges bigint)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH /* relations.edges_between_names */ named AS MATERIALIZED (
        SELECT id FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
    )
    SELECT r.type, count(*)
    FROM relations r
    WHERE r.tenant_id = tenant AND r.graph_id = graph AND r.removed_revision IS NULL AND r.to_graph = graph
        AND r.from_node IN (SELECT id FROM named) AND r.to_node IN (SELECT id FROM named)
    GROUP BY r.type;
END $$;

-- Whether a graph has live nodes that recall may have to leave out (nodes_unusual).
CREATE FUNCTION has_unusual_nodes(tenant uuid, graph uuid)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on
AS $$
BEGIN
    RETURN EXISTS (
        SELECT /* recall.has_unusual_nodes */ FROM search_nodes n
        WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
            AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
    );
END $$;

-- Whether recall shows a node: it is neither archived nor expired nor, unless outdated_too, outdated.
CREATE FUNCTION is_node_shown(tenant uuid, node uuid, outdated_too boolean)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on SET enable_sort = off
AS $$
BEGIN
    RETURN (
        SELECT /* recall.is_node_shown */ n.status <> 'archived' AND (n.status <> 'outdated' OR outdated_too)
            AND is_current(n.expires_at)
        FROM search_nodes n
        WHERE n.tenant_id = tenant AND same_key(n.id, node)
        ORDER BY n.id LIMIT 1
    );
END $$;

-- The live nodes of a name in all its forms, placeholders and expired ones too: the one with exactly this name, the
-- one whose name is its key, and the 1,000 oldest others whose names have the same key. The key is computed apart
-- (OFFSET 0): under row-level security an index serves no condition that computes it of a column.
CREATE FUNCTION forms_of(tenant uuid, graph uuid, wanted text)
RETURNS SETOF nodes
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.name)
            AND removed_revision IS NULL AND name IS NOT NULL
        ORDER BY name LIMIT 1)
        UNION ALL
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.key) AND w.key <> w.name
            AND removed_revision IS NULL AND name IS NOT NULL
        ORDER BY name LIMIT 1)
        UNION ALL
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(name_key, w.key) AND name <> w.name
            AND removed_revision IS NULL AND name_key IS NOT NULL
        ORDER BY name_key, id LIMIT 1000)
    ) AS n
$$;

-- The live node that a name means. Where a graph has several forms of the name, an active entity comes before an
-- outdated or archived one, that before a placeholder, and all before what has expired; then exactly this name, then
-- its key, then the oldest. Mostly an active entity has exactly this name: then nothing else is read.
CREATE FUNCTION nodes_named(tenant uuid, graph uuid, wanted text)
RETURNS SETOF nodes
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT e.* FROM (
            SELECT * FROM nodes
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.name)
                AND removed_revision IS NULL AND name IS NOT NULL
            ORDER BY name LIMIT 1
        ) AS e
        WHERE NOT e.placeholder AND e.status = 'active' AND coalesce(e.expires_at > statement_timestamp(), true))
        UNION ALL
        (SELECT f.* FROM forms_of(tenant, graph, w.name) AS f
        ORDER BY CASE WHEN f.expires_at <= statement_timestamp() THEN 3 WHEN f.placeholder THEN 2
                WHEN f.status <> 'active' THEN 1 ELSE 0 END, f.name <> w.name, f.name_key IS NOT NULL, f.id
        LIMIT 1)
        LIMIT 1
    ) AS n
$$;

-- Whatever changes the summary or the tags without their words has the worker make these anew.
CREATE FUNCTION forget_labels() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.labels := NULL;
    NEW.labels_version := 0;
    RETURN NEW;
END $$;

-- The words of a summary and of tags by PostgreSQL's analysis of English, where there are no others.
CREATE FUNCTION english_labels(summary text, tags text[]) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT recollect.label_words(coalesce(summary, '')) || setweight(recollect.label_words(recollect.joined(tags)), 'B')
$$;

-- What a memory says of itself beside its text: its kind, then its tags, then its source, then the texts and whole
-- numbers of its metadata and of the lists in it; 32 at most, of each the first 100 characters
-- (graph/passages/labels.py).
CREATE FUNCTION memory_labels(kind text, tags text[], source text, metadata jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ARRAY(
        SELECT left(l.label, 100)
        FROM (
            SELECT 1 AS part, 0::bigint AS place, 0::bigint AS item, kind AS label
            UNION ALL
            SELECT 2, t.place, 0, t.tag FROM unnest(tags) WITH ORDINALITY AS t (tag, place)
            UNION ALL
            SELECT 3, 0, 0, source
            UNION ALL
            SELECT 4, m.place, v.item, v.value #>> '{}'
            FROM jsonb_each(metadata) WITH ORDINALITY AS m (key, value, place)
            CROSS JOIN LATERAL jsonb_array_elements(
                CASE WHEN jsonb_typeof(m.value) = 'array' THEN m.value ELSE jsonb_build_array(m.value) END
            ) WITH ORDINALITY AS v (value, item)
            WHERE jsonb_typeof(v.value) = 'string' OR v.value::text ~ '^-?[0-9]+$'
        ) AS l
        WHERE l.label <> ''
        ORDER BY l.part, l.place, l.item
        LIMIT 32
    )
$$;

-- Nodes for searching, as the other views whose names begin with search_. Under row-level security an operator that
-- is not leakproof (@@, %, LIKE, lower) cannot use its index. These views run as their owner, carry the tenant
-- predicate inside, and show no row where no tenant is set (docs/adr/0002-search-through-views.md). A view shows the
-- columns that there were when it was made: whoever adds one to the table makes the view anew.
CREATE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_nodes TO recollect_app;

-- As the other views for searching: lower() is not known to keep what it is told to itself, so that below row-level
-- security no index serves it. The view has its condition.
CREATE VIEW search_aliases AS
    SELECT * FROM aliases WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_aliases TO recollect_app;

CREATE TRIGGER nodes_name_key BEFORE INSERT ON nodes
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER nodes_other_name_key BEFORE UPDATE OF name ON nodes
    FOR EACH ROW WHEN (OLD.name_key IS NOT NULL OR NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER node_versions_name_key BEFORE INSERT ON node_versions
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER node_versions_other_name_key BEFORE UPDATE OF name ON node_versions
    FOR EACH ROW WHEN (OLD.name_key IS NOT NULL OR NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER aliases_name_key BEFORE INSERT ON aliases
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER nodes_other_labels BEFORE UPDATE OF summary, tags ON nodes
    FOR EACH ROW WHEN ((NEW.summary IS DISTINCT FROM OLD.summary OR NEW.tags IS DISTINCT FROM OLD.tags)
        AND NEW.labels IS NOT DISTINCT FROM OLD.labels)
    EXECUTE FUNCTION forget_labels();
