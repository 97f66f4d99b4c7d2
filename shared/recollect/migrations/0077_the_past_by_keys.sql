-- What a reader of the past asks of given entities is looked up by keys, as what is asked of the present is: in the order of
-- an index (BETWEEN, ORDER BY), so that no plan goes through a graph for each of them, whatever PostgreSQL knows of the
-- tenant. Beside one larger tenant a page of 1,000 entities read seven million rows.

-- The version, at a revision, of the node that had a name then. The versions of that name are read by their index, and the
-- newest of each of their nodes by its key.
CREATE FUNCTION named_at(tenant uuid, graph uuid, wanted text, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (
        SELECT DISTINCT v.node_id FROM (
            SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN wanted AND wanted
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0
        ) AS v
    ) AS bearer
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, bearer.node_id, at_revision) v WHERE v.graph_id = graph AND v.name = wanted
        OFFSET 0
    ) AS n
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
            WHERE tenant_id = tenant AND parent_id BETWEEN parent AND parent
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY parent_id OFFSET 0
        ) AS v
    ) AS child
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, child.node_id, at_revision) v WHERE v.graph_id = graph AND v.parent_id = parent
        OFFSET 0
    ) AS n
$$;

REVOKE ALL ON FUNCTION named_at(uuid, uuid, text, bigint), children_at(uuid, uuid, uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION named_at(uuid, uuid, text, bigint), children_at(uuid, uuid, uuid, bigint) TO recollect_app;

-- When a node or what is said of it last changed, at a revision; `since`: when its version of then was written.
CREATE OR REPLACE FUNCTION changed_at(tenant uuid, graph uuid, node uuid, since timestamptz, at_revision bigint)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT greatest(since, max(o.created_at), max(c.at), (
        SELECT n.changed_before FROM nodes n WHERE n.tenant_id = tenant AND n.id BETWEEN node AND node ORDER BY n.id LIMIT 1
    ))
    FROM (
        SELECT created_at, removed_revision FROM observations
        WHERE tenant_id = tenant AND node_id BETWEEN node AND node AND added_revision <= at_revision
        ORDER BY node_id OFFSET 0
    ) AS o
    LEFT JOIN LATERAL (
        SELECT at FROM changes
        WHERE tenant_id = tenant AND graph_id = graph AND revision BETWEEN o.removed_revision AND o.removed_revision
            AND revision <= at_revision
        ORDER BY revision LIMIT 1
    ) AS c ON true
$$;

-- As before, but for how it is looked up.
CREATE OR REPLACE FUNCTION statements_about(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.content
    FROM (
        SELECT content, expires_at FROM search_observations
        WHERE at_revision IS NULL AND tenant_id = tenant AND node_id BETWEEN node AND node
            AND coalesce(removed_revision, 0) = 0 AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS o
    WHERE coalesce(o.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT o.content
    FROM (
        SELECT content, graph_id, expires_at FROM observations
        WHERE at_revision IS NOT NULL AND tenant_id = tenant AND node_id BETWEEN node AND node
            AND added_revision <= at_revision AND coalesce(removed_revision > at_revision, true) AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS o
    WHERE o.graph_id IS NOT DISTINCT FROM graph AND coalesce(o.expires_at > at_time, true)
$$;
