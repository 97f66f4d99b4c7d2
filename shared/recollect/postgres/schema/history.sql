-- Reading a graph as it was at a revision. Revisions belong to a graph, so each function takes one. The functions are
-- plain SQL with one statement and run as their caller: the planner folds them into the query, and row-level security
-- holds as it does for the tables.
--
-- Reads of the past look what belongs together up by its key. Without statistics of a tenant PostgreSQL expects a row or
-- two of it, takes every index that begins with the tenant for equally good, and compared all with all: a search of the
-- past of 2,000 entities took 16 seconds. So each is looked up (ADR 32).

-- Every node that lived at a revision, in the version that was its head then: of sibling heads the highest. The later
-- version is looked up for each by the primary key (ADR 32), and never every version compared with every other.
CREATE FUNCTION nodes_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT v.* FROM node_versions v
    WHERE v.tenant_id = tenant AND v.graph_id = graph AND v.added_revision <= at_revision
        AND is_live_at(v.superseded_revision, at_revision) AND NOT v.deleted AND NOT EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = tenant AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= at_revision
            ORDER BY later.version OFFSET 0
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

-- Every relation that there was at a revision, as it was then, by the id that it has now. The columns are those of the
-- table, in its order.
CREATE FUNCTION relations_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF relations
LANGUAGE sql STABLE
AS $$
    SELECT * FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND added_revision <= at_revision
    UNION ALL
    SELECT tenant_id, graph_id, coalesce(version_of, id), from_node, to_graph, to_node, type, metadata, ordinal,
        added_revision, removed_revision, created_at, created_by, version_of, updated_at
    FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NOT NULL AND removed_revision > at_revision
        AND added_revision <= at_revision
$$;

-- A node as it was at a time, or no row: for the ends of relations, which may lie in another graph, with other
-- revisions.
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
    WHERE NOT v.deleted AND is_current_at(v.expires_at, at_time)
$$;

-- When a node or what is said of it last changed, at a revision; `since`: when its version of then was written.
CREATE FUNCTION changed_at(tenant uuid, graph uuid, node uuid, since timestamptz, at_revision bigint)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT greatest(since, max(o.created_at), max(c.at), (
        SELECT n.changed_before FROM nodes n WHERE n.tenant_id = tenant AND same_key(n.id, node) ORDER BY n.id LIMIT 1
    ))
    FROM (
        SELECT created_at, removed_revision FROM observations
        WHERE tenant_id = tenant AND same_key(node_id, node) AND added_revision <= at_revision
        ORDER BY node_id OFFSET 0
    ) AS o
    LEFT JOIN LATERAL (
        SELECT at FROM changes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(revision, o.removed_revision)
            AND revision <= at_revision
        ORDER BY revision LIMIT 1
    ) AS c ON true
$$;

-- The version that a node had at a revision; none where it was not there.
CREATE FUNCTION version_at(tenant uuid, node uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT * FROM (
        SELECT v.* FROM node_versions v
        WHERE v.tenant_id = tenant AND same_key(v.node_id, node) AND v.added_revision <= at_revision
        ORDER BY v.node_id DESC, v.version DESC
        LIMIT 1
    ) AS newest
    WHERE NOT newest.deleted AND is_live_at(newest.superseded_revision, at_revision)
$$;

-- The versions of the nodes that stood right below a node at a revision, likewise.
CREATE FUNCTION children_at(tenant uuid, graph uuid, parent uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (
        SELECT DISTINCT v.node_id FROM (
            SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND same_key(parent_id, parent)
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY parent_id OFFSET 0
        ) AS v
    ) AS child
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, child.node_id, at_revision) v WHERE v.graph_id = graph AND v.parent_id = parent
        OFFSET 0
    ) AS n
$$;

-- The nodes that had a name at a revision, in all its forms.
CREATE FUNCTION forms_at(tenant uuid, graph uuid, wanted text, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT v.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        SELECT DISTINCT b.node_id FROM (
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.name)
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0)
            UNION ALL
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.key) AND w.key <> w.name
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0)
            UNION ALL
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name_key, w.key)
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name_key OFFSET 0)
        ) AS b
    ) AS bearer
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, bearer.node_id, at_revision) n
        WHERE n.graph_id = graph AND coalesce(n.name_key, n.name) = w.key
        OFFSET 0
    ) AS v
$$;

-- Versions as they are told: with when their lineage began, and the other heads that a conflict left beside them.
-- When a node was first written is looked up only where a version does not say when its lineage began. It runs as its
-- caller, under row-level security.
CREATE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.last_dedup_at, v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision,
        v.created_at, v.created_by, coalesce(v.began_at, node_created_at(v.tenant_id, v.node_id)) AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts, v.reason, v.said_offset
    FROM node_versions v;
GRANT SELECT ON versions TO recollect_app;

-- The node that a name meant at a revision and its time, as nodes_named has it.
CREATE FUNCTION named_at(tenant uuid, graph uuid, wanted text, at_revision bigint, at_time timestamptz)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT f.* FROM forms_at(tenant, graph, wanted, at_revision) AS f
    ORDER BY CASE WHEN f.expires_at <= at_time THEN 3 WHEN f.placeholder THEN 2 WHEN f.status <> 'active' THEN 1 ELSE 0 END,
        f.name <> wanted, f.name_key IS NOT NULL, f.node_id
    LIMIT 1
$$;
