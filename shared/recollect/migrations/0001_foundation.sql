-- Tenants, keys, graphs, nodes, observations, relations, passages and changes.
--
-- Every tenant table has tenant_id first in its primary key and its foreign keys: rows of different tenants cannot be
-- joined by mistake, and the schema can be distributed by tenant. Nothing is overwritten: rows carry the revision
-- that added them and the one that removed them.

CREATE TABLE tenants (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    name text NOT NULL,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

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
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
);

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
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id)
) WITH (fillfactor = 50);

-- Raised by the worker whenever vectors, windows or term frequencies changed: part of every search cache key.
CREATE TABLE graph_indexes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    index_epoch bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id)
) WITH (fillfactor = 50);

CREATE TABLE api_keys (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('agent', 'admin')),
    hash bytea NOT NULL UNIQUE,
    hint text NOT NULL,
    scopes text[] NOT NULL,
    graph_ids uuid[],
    default_graph_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, default_graph_id) REFERENCES graphs (tenant_id, id)
);

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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX nodes_live_name ON nodes (tenant_id, graph_id, name)
    WHERE removed_revision IS NULL AND name IS NOT NULL;
CREATE INDEX nodes_live ON nodes (tenant_id, graph_id, created_at, id) WHERE removed_revision IS NULL;
CREATE INDEX nodes_live_fact ON nodes (tenant_id, graph_id, hashtextextended(content, 0))
    WHERE removed_revision IS NULL AND name IS NULL;
-- Nodes that recall may have to leave out.
CREATE INDEX nodes_unusual ON nodes (tenant_id, graph_id, id) WHERE removed_revision IS NULL
    AND (status <> 'active' OR expires_at IS NOT NULL OR freshness_at IS NOT NULL);
-- GIN lists of pending entries are kept short, since a search reads them from end to end: with the default of 4 MB,
-- searches took four times as long after 2,000 new entities (measured). Shorter still, and batches of writes pay for it.
CREATE INDEX nodes_trigrams ON nodes USING gin (graph_id, name gin_trgm_ops, kind gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL;

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
    PRIMARY KEY (tenant_id, node_id, version),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
);

CREATE TABLE aliases (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 512),
    added_revision bigint NOT NULL,
    removed_revision bigint,
    PRIMARY KEY (tenant_id, node_id, name, added_revision),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
);

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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
);
-- By hash, since a text may be longer than an index entry can be; also the way to all observations of a node.
CREATE INDEX observations_live ON observations (tenant_id, node_id, hashtextextended(content, 0))
    WHERE removed_revision IS NULL;
CREATE INDEX observations_removed ON observations (tenant_id, node_id) WHERE removed_revision IS NOT NULL;
CREATE INDEX observations_trigrams ON observations USING gin (graph_id, content gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;

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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, from_node) REFERENCES nodes (tenant_id, id)
);
CREATE UNIQUE INDEX relations_live ON relations (tenant_id, from_node, type, to_node) WHERE removed_revision IS NULL;
CREATE INDEX relations_live_incoming ON relations (tenant_id, to_node) WHERE removed_revision IS NULL;
CREATE INDEX relations_live_graph ON relations (tenant_id, graph_id, id) WHERE removed_revision IS NULL;
CREATE INDEX relations_removed ON relations (tenant_id, from_node) WHERE removed_revision IS NOT NULL;
CREATE INDEX relations_removed_incoming ON relations (tenant_id, to_node) WHERE removed_revision IS NOT NULL;

-- Searchable pieces of text. Derived and rebuildable: never the only copy of anything.
-- memory_id is the observation's id, or the node's for a fact or a name. A row without a vector is the embedding queue.
CREATE TABLE passages (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    source text NOT NULL CHECK (source IN ('observation', 'fact', 'name')),
    place integer NOT NULL DEFAULT 0,
    thread text,
    said_at timestamptz,
    expires_at timestamptz,
    text text NOT NULL,
    tsv tsvector NOT NULL,
    embedding halfvec,
    embedding_model text,
    claimed_until timestamptz,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
) WITH (fillfactor = 80);
-- Vectors stay in the row: an exact scan that had to fetch each from a side table would be several times slower.
ALTER TABLE passages ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX passages_pending ON passages (tenant_id, id) WHERE embedding IS NULL AND removed_revision IS NULL;
CREATE INDEX passages_live_memory ON passages (tenant_id, memory_id) WHERE removed_revision IS NULL;
CREATE INDEX passages_live_node ON passages (tenant_id, node_id) WHERE removed_revision IS NULL;
CREATE INDEX passages_live_graph ON passages (tenant_id, graph_id) WHERE removed_revision IS NULL;
CREATE INDEX passages_words ON passages USING gin (graph_id, tsv) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;

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
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id)
);

-- Isolation. The sub-select makes the tenant a constant of the plan; nullif survives a pooled connection, where a
-- setting that was once set reads as an empty string.
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tenants
    USING (id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT ON tenants TO recollect_app;

DO $$
DECLARE tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['graphs', 'graph_heads', 'graph_indexes', 'api_keys', 'nodes', 'node_versions',
        'aliases', 'observations', 'relations', 'passages', 'changes']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant_isolation ON %I USING (tenant_id = (SELECT nullif(current_setting(
            ''recollect.tenant_id'', true), '''')::uuid))', tenant_table);
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA recollect TO recollect_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON graphs, graph_heads, graph_indexes, nodes, node_versions, aliases,
    observations, relations, passages TO recollect_app;
-- A key is never deleted and the log is never rewritten by gateway or worker.
GRANT SELECT, INSERT ON changes TO recollect_app;
GRANT SELECT, INSERT ON api_keys TO recollect_app;
GRANT UPDATE (revoked_at, last_used_at) ON api_keys TO recollect_app;

-- Search views. Under row-level security an operator that is not leakproof (@@, %, LIKE) cannot use its index. These
-- views run as their owner, carry the tenant predicate inside, and show no row where no tenant is set.
CREATE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE VIEW search_observations AS
    SELECT * FROM observations
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_nodes, search_observations, search_passages TO recollect_app;

-- What must happen before a tenant is known: a closed list of functions that run as their owner. Each takes and
-- returns no more than its one purpose needs, and each has its attack test.

-- A key by its keyed hash, with its tenant; whether it still holds is for the caller to judge.
CREATE FUNCTION find_api_key(key_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, kind text, scopes text[], graph_ids uuid[],
    default_graph text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.tenant_id, t.slug, t.status, k.id, k.kind, k.scopes, k.graph_ids, g.name, k.expires_at, k.revoked_at,
        k.last_used_at
    FROM api_keys k
    JOIN tenants t ON t.id = k.tenant_id
    LEFT JOIN graphs g ON g.tenant_id = k.tenant_id AND g.id = k.default_graph_id
    WHERE k.hash = key_hash
$$;

-- Tenants that have passages without a vector: ids only.
CREATE FUNCTION tenants_with_pending_passages()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, public, pg_temp
AS $$
    SELECT t.id
    FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND p.embedding IS NULL AND p.removed_revision IS NULL
    )
$$;

REVOKE ALL ON FUNCTION find_api_key(bytea), tenants_with_pending_passages() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key(bytea), tenants_with_pending_passages() TO recollect_app;
