-- What an observation says of itself, its versions, and why nodes and observations are as they are.

-- kind, tags, importance, source and metadata of its own; empty: it says nothing of the kind, and its entity's hold. An
-- outdated one is kept, and told only where outdated memories are asked for. A change closes its row and adds another of the
-- same id: each row is a version, from added_revision until removed_revision. first_revision: that of its first version,
-- where this is a later one, which keeps its place among what its entity says. reason: why it was last changed, if told.
ALTER TABLE observations
    ADD COLUMN kind text,
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    ADD COLUMN importance double precision CHECK (importance BETWEEN 0 AND 10),
    ADD COLUMN source text,
    ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'outdated')),
    ADD COLUMN reason text,
    ADD COLUMN first_revision bigint,
    DROP CONSTRAINT observations_pkey,
    ADD PRIMARY KEY (tenant_id, id, added_revision);
DROP INDEX observations_node;
CREATE INDEX observations_node ON observations (tenant_id, node_id, coalesce(first_revision, added_revision), id);
-- Few: what is kept but not told.
CREATE INDEX observations_outdated ON observations (tenant_id, graph_id)
    WHERE status = 'outdated' AND removed_revision IS NULL;

-- What filters look at, of the memory itself: null where it says nothing, so that its node's holds.
ALTER TABLE passages
    ADD COLUMN kind text,
    ADD COLUMN tags text[],
    ADD COLUMN importance double precision,
    ADD COLUMN outdated boolean NOT NULL DEFAULT false;

-- Why a version was written, where its writer told it. It holds until another is told or the status changes.
ALTER TABLE nodes ADD COLUMN reason text;
ALTER TABLE node_versions ADD COLUMN reason text;

-- Views show the columns that there were when they were made.
CREATE OR REPLACE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW search_observations AS
    SELECT * FROM observations
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.last_dedup_at, v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision, v.created_at,
        v.created_by, coalesce(v.began_at, n.created_at) AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts, v.reason
    FROM node_versions v
    JOIN nodes n ON n.tenant_id = v.tenant_id AND n.id = v.node_id;

-- What entities say, as before, without what is outdated.
CREATE OR REPLACE FUNCTION statements_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (id uuid, node_id uuid, content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.id, o.node_id, o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.graph_id = graph AND o.removed_revision IS NULL
        AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp()) AND o.status = 'active'
    UNION ALL
    SELECT o.id, o.node_id, o.content
    FROM observations_at(tenant, graph, at_revision) o
    WHERE at_revision IS NOT NULL AND (o.expires_at IS NULL OR o.expires_at > at_time) AND o.status = 'active'
$$;
CREATE OR REPLACE FUNCTION statements_about(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.node_id = node AND coalesce(o.removed_revision, 0) = 0
        AND coalesce(o.expires_at > statement_timestamp(), true) AND o.status = 'active'
    UNION ALL
    SELECT o.content
    FROM observations_at(tenant, graph, at_revision) o
    WHERE at_revision IS NOT NULL AND o.node_id = node AND (o.expires_at IS NULL OR o.expires_at > at_time)
        AND o.status = 'active'
$$;

-- All that a version says in words, of nodes and of observations: what an erasure looks for names in.
CREATE OR REPLACE FUNCTION words_of(version node_versions) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT concat_ws(E'\n', version.name, version.kind, version.content, version.summary, version.source, version.thread,
        array_to_string(version.tags, E'\n'), version.metadata::text, version.reason)
$$;
CREATE FUNCTION words_of(statement observations) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT concat_ws(E'\n', statement.content, statement.thread, statement.kind, statement.source,
        array_to_string(statement.tags, E'\n'), statement.metadata::text, statement.reason)
$$;
REVOKE ALL ON FUNCTION words_of(observations) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION words_of(observations) TO recollect_app;
