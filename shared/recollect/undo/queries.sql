-- name: count_touched
-- How many ids the changes of a graph after revision $3, and up to $4 and by actor $5 where these are not null, touched.
SELECT coalesce(sum(cardinality(ids)), 0)::bigint FROM changes
WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3 AND ($4::bigint IS NULL OR revision <= $4)
    AND ($5::text IS NULL OR actor = $5);

-- name: find_touched
-- These changes, and what they touched.
SELECT revision, ids FROM changes
WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3 AND ($4::bigint IS NULL OR revision <= $4)
    AND ($5::text IS NULL OR actor = $5)
ORDER BY revision;

-- name: touched_lineages
-- Those of these ids that are lineages which the revisions $4 wrote, as they are now, and what of others hangs on them:
-- children that stood below one before it was there again do not. That one was archived since because it had expired (by
-- the operation $5) is nobody's change. Each is looked up by its key, whatever the planner expects: what is ordered by a
-- key's last column is read by that key.
WITH written AS (
    SELECT node_id, min(version) AS first, max(version) AS last, min(added_revision) AS since FROM node_versions
    WHERE tenant_id = $1 AND graph_id = $2 AND node_id = ANY ($3::uuid[]) AND added_revision = ANY ($4::bigint[])
    GROUP BY node_id
)
SELECT n.id, n.removed_revision IS NULL AS lives, coalesce(n.expires_at <= statement_timestamp(), false) AS expired,
    n.created_at, w.first > 1 AS existed, l.placeholder AS placed,
    EXISTS (
        SELECT 1 FROM node_versions v
        WHERE v.tenant_id = $1 AND v.node_id = n.id AND v.version > w.first AND v.added_revision <> ALL ($4)
            AND NOT EXISTS (
                SELECT 1 FROM changes c
                WHERE c.tenant_id = $1 AND c.graph_id = $2 AND c.revision = v.added_revision AND c.operation = $5
            )
        ORDER BY v.version OFFSET 0
    ) AS changed_later, EXISTS (
        SELECT 1 FROM observations o
        WHERE o.tenant_id = $1 AND o.node_id = n.id AND o.removed_revision IS NULL AND o.added_revision <> ALL ($4)
    ) AS said, n.id IN (
        SELECT from_node FROM relations
        WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND added_revision <> ALL ($4)
    ) OR n.id IN (
        SELECT to_node FROM relations
        WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND added_revision <> ALL ($4)
    ) AS related, EXISTS (
        SELECT 1 FROM nodes c JOIN node_versions v ON v.tenant_id = $1 AND v.id = c.version_id
        WHERE c.tenant_id = $1 AND c.parent_id = n.id AND c.removed_revision IS NULL AND v.added_revision > w.since
            AND v.added_revision <> ALL ($4)
    ) AS above, n.name, n.kind, n.content, n.summary, n.tags, n.importance, n.metadata, n.parent_id, n.status, n.source,
    n.thread, n.said_at, n.freshness_at, n.ttl_days, n.expires_at, n.last_dedup_at, n.placeholder
FROM written w
CROSS JOIN LATERAL (SELECT * FROM nodes WHERE tenant_id = $1 AND id = w.node_id LIMIT 1) AS n
CROSS JOIN LATERAL (
    SELECT placeholder FROM node_versions WHERE tenant_id = $1 AND node_id = w.node_id AND version >= w.last
    ORDER BY version LIMIT 1
) AS l
ORDER BY n.id;

-- name: lineages_before
-- These lineages in the version before the first that the revisions $4 wrote, where there was one and it is kept.
SELECT b.node_id, b.deleted, coalesce(b.expires_at <= statement_timestamp(), false) AS expired,
    coalesce(b.began_at, n.created_at) AS began_at, b.name, b.kind, b.content, b.summary, b.tags, b.importance,
    b.metadata, b.parent_id, b.status, b.source, b.thread, b.said_at, b.freshness_at, b.ttl_days, b.expires_at,
    b.last_dedup_at, b.placeholder
FROM (
    SELECT node_id, min(version) AS first FROM node_versions
    WHERE tenant_id = $1 AND graph_id = $2 AND node_id = ANY ($3::uuid[]) AND added_revision = ANY ($4::bigint[])
    GROUP BY node_id
) AS w
CROSS JOIN LATERAL (
    SELECT * FROM node_versions WHERE tenant_id = $1 AND node_id = w.node_id AND version < w.first
    ORDER BY version DESC LIMIT 1
) AS b
CROSS JOIN LATERAL (SELECT created_at FROM nodes WHERE tenant_id = $1 AND id = b.node_id LIMIT 1) AS n;

-- name: touched_observations
-- Observations, among these ids or of these nodes, that the revisions $4 added or took away, but not both; at most $5.
SELECT o.id, o.node_id, coalesce(n.name, '') AS entity, o.content, o.thread, coalesce(o.said_at, o.created_at) AS said_at,
    o.expires_at, o.created_by, o.added_revision = ANY ($4::bigint[]) AS added, o.removed_revision IS NULL AS lives,
    coalesce(o.expires_at <= statement_timestamp(), false) AS expired
FROM observations o
JOIN nodes n ON n.tenant_id = $1 AND n.id = o.node_id
WHERE o.tenant_id = $1 AND o.graph_id = $2 AND (o.id = ANY ($3::uuid[]) OR o.node_id = ANY ($3::uuid[]))
    AND (o.added_revision = ANY ($4) OR o.removed_revision = ANY ($4))
ORDER BY o.added_revision, o.id
LIMIT $5;

-- name: touched_relations
-- Relations among these ids that the revisions $4 added or took away.
SELECT id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at, created_by,
    added_revision = ANY ($4::bigint[]) AS added, removed_revision IS NULL AS lives
FROM relations
WHERE tenant_id = $1 AND graph_id = $2 AND id = ANY ($3::uuid[])
ORDER BY id;

-- name: touched_aliases
-- Names by which the revisions $4 let these nodes be found, or no longer be found.
SELECT node_id, name, added_revision = ANY ($4::bigint[]) AS added FROM aliases
WHERE tenant_id = $1 AND graph_id = $2 AND node_id = ANY ($3::uuid[])
    AND (added_revision = ANY ($4) AND removed_revision IS NULL
        OR removed_revision = ANY ($4) AND added_revision <> ALL ($4));

-- name: owners_of_names
-- Who has these names. What has expired gives its name away.
SELECT name, id FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND name = ANY ($3::text[]) AND removed_revision IS NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp());

-- name: living_among
-- Those of these nodes that live, in whichever of the tenant's graphs.
SELECT id FROM nodes WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND removed_revision IS NULL;

-- name: lines_above
-- These nodes and all above them, each with its parent. Each level is looked up by itself, as in the hierarchy.
WITH RECURSIVE above AS (
    SELECT id, parent_id FROM nodes WHERE tenant_id = $1 AND id = ANY ($2::uuid[])
    UNION
    SELECT p.id, p.parent_id FROM above a
    CROSS JOIN LATERAL (
        SELECT id, parent_id FROM nodes
        WHERE tenant_id = $1 AND id = a.parent_id AND coalesce(removed_revision, 0) = 0
        OFFSET 0
    ) AS p
)
SELECT id, parent_id FROM above;
