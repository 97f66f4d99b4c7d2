-- Reading a graph as it was at a revision, and what lineages need to be written and walked.
--
-- Revisions belong to a graph, so each function takes one. The functions are plain SQL with one statement and run as
-- their caller: the planner folds them into the query, and row-level security holds as it does for the tables.

-- Since when the lineage is told to be: a merge makes it as old as the oldest that it took in, and the past stays as it
-- was told. Null: since the node's created_at.
ALTER TABLE node_versions ADD COLUMN began_at timestamptz;

CREATE INDEX node_versions_name ON node_versions (tenant_id, graph_id, name);
-- Walks of the past ask at every level what hung below a node, and what had expired.
CREATE INDEX node_versions_parent ON node_versions (tenant_id, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX node_versions_expiring ON node_versions (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
-- Names are recognised in texts whatever their case.
CREATE INDEX nodes_live_any_case ON nodes (tenant_id, graph_id, lower(name)) WHERE removed_revision IS NULL AND name IS NOT NULL;
CREATE INDEX nodes_live_parent ON nodes (tenant_id, parent_id) WHERE removed_revision IS NULL AND parent_id IS NOT NULL;
CREATE INDEX nodes_expiring ON nodes (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
-- All rows of a node, live or not: what a graph's deletion and PostgreSQL's own checks look for.
DROP INDEX observations_removed, relations_removed, passages_live_node;
CREATE INDEX observations_node ON observations (tenant_id, node_id);
CREATE INDEX relations_from ON relations (tenant_id, from_node);
CREATE INDEX passages_node ON passages (tenant_id, node_id);
CREATE INDEX changes_at ON changes (tenant_id, graph_id, at);

-- Every node that lived at a revision, in the version that was its head then: of sibling heads the highest.
CREATE FUNCTION nodes_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT v.* FROM node_versions v
    WHERE v.tenant_id = tenant AND v.graph_id = graph AND v.added_revision <= at_revision
        AND (v.superseded_revision IS NULL OR v.superseded_revision > at_revision) AND NOT v.deleted
        AND NOT EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = tenant AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= at_revision
        )
$$;

-- Every observation that a node had at a revision. Two branches, for the index of live and that of removed rows.
CREATE FUNCTION observations_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF observations
LANGUAGE sql STABLE
AS $$
    SELECT * FROM observations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND added_revision <= at_revision
    UNION ALL
    SELECT * FROM observations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NOT NULL AND removed_revision > at_revision
        AND added_revision <= at_revision
$$;

-- Every relation that there was at a revision.
CREATE FUNCTION relations_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF relations
LANGUAGE sql STABLE
AS $$
    SELECT * FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND added_revision <= at_revision
    UNION ALL
    SELECT * FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NOT NULL AND removed_revision > at_revision
        AND added_revision <= at_revision
$$;

-- A node as it was at a time, or no row: for the ends of relations, which may lie in another graph, with other revisions.
CREATE FUNCTION node_at(tenant uuid, node uuid, at_time timestamptz)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT * FROM (
        SELECT * FROM node_versions
        WHERE tenant_id = tenant AND node_id = node AND created_at <= at_time
        ORDER BY version DESC
        LIMIT 1
    ) AS v
    WHERE NOT v.deleted AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;

-- When an entity last changed, as it was told at a revision: by a version, or by an observation that came or went.
CREATE FUNCTION changed_at(tenant uuid, graph uuid, node uuid, since timestamptz, at_revision bigint)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT greatest(since, max(o.created_at), max(c.at))
    FROM observations o
    LEFT JOIN changes c ON c.tenant_id = tenant AND c.graph_id = graph AND c.revision = o.removed_revision
        AND o.removed_revision <= at_revision
    WHERE o.tenant_id = tenant AND o.node_id = node AND o.added_revision <= at_revision
$$;

REVOKE ALL ON FUNCTION nodes_at(uuid, uuid, bigint), observations_at(uuid, uuid, bigint), relations_at(uuid, uuid, bigint),
    node_at(uuid, uuid, timestamptz), changed_at(uuid, uuid, uuid, timestamptz, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nodes_at(uuid, uuid, bigint), observations_at(uuid, uuid, bigint), relations_at(uuid, uuid, bigint),
    node_at(uuid, uuid, timestamptz), changed_at(uuid, uuid, uuid, timestamptz, bigint) TO recollect_app;

-- Versions as they are told: with when their lineage began, and the other heads that a conflict left beside them.
-- It runs as its caller, under row-level security.
CREATE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.last_dedup_at, v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision, v.created_at,
        v.created_by, coalesce(v.began_at, n.created_at) AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts
    FROM node_versions v
    JOIN nodes n ON n.tenant_id = v.tenant_id AND n.id = v.node_id;
GRANT SELECT ON versions TO recollect_app;

-- A graph's log and counters go with it, and only with it: nobody but their owner may delete a change.
ALTER TABLE changes DROP CONSTRAINT changes_tenant_id_graph_id_fkey,
    ADD FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE;
ALTER TABLE graph_heads DROP CONSTRAINT graph_heads_tenant_id_graph_id_fkey,
    ADD FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE;
ALTER TABLE graph_indexes DROP CONSTRAINT graph_indexes_tenant_id_graph_id_fkey,
    ADD FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_tenant_id_default_graph_id_fkey,
    ADD FOREIGN KEY (tenant_id, default_graph_id) REFERENCES graphs (tenant_id, id)
        ON DELETE SET NULL (default_graph_id);
