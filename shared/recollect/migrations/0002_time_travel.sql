-- Reading a graph as it was at a revision, and what lineages need to be written and walked.
--
-- Revisions belong to a graph, so each function takes one. The functions are plain SQL with one statement and run as their caller: the planner folds them into the query, and
-- row-level security holds as it does for the tables.

CREATE INDEX node_versions_name ON node_versions (tenant_id, graph_id, name);
CREATE INDEX nodes_live_parent ON nodes (tenant_id, parent_id) WHERE removed_revision IS NULL AND parent_id IS NOT NULL;
CREATE INDEX nodes_expiring ON nodes (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
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

REVOKE ALL ON FUNCTION nodes_at(uuid, uuid, bigint), observations_at(uuid, uuid, bigint), relations_at(uuid, uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nodes_at(uuid, uuid, bigint), observations_at(uuid, uuid, bigint), relations_at(uuid, uuid, bigint)
    TO recollect_app;

-- Versions as they are told: with when their lineage began, and the other heads that a conflict left beside them.
-- It runs as its caller, under row-level security.
CREATE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision, v.created_at,
        v.created_by, n.created_at AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts
    FROM node_versions v
    JOIN nodes n ON n.tenant_id = v.tenant_id AND n.id = v.node_id;
GRANT SELECT ON versions TO recollect_app;
