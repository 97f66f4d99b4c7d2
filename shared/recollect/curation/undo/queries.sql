-- name: count_touched
-- plan: once from here
-- How many ids the changes of a graph after revision :since, and up to :until and by actor :actor where these are not
-- null, touched.
SELECT coalesce(sum(cardinality(ids)), 0)::bigint FROM changes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :since
    AND (:until::bigint IS NULL OR revision <= :until)
    AND (:actor::text IS NULL OR actor = :actor);

-- name: count_metadata
-- The bytes of the metadata of these ids: of nodes, of observations and of relations.
SELECT (
    SELECT coalesce(sum(octet_length(metadata::text)), 0) FROM nodes
    WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:ids::uuid[])
) + (
    SELECT coalesce(sum(octet_length(metadata::text)), 0) FROM observations
    WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:ids::uuid[])
) + (
    SELECT coalesce(sum(octet_length(metadata::text)), 0) FROM relations
    WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:ids::uuid[])
) AS bytes;

-- name: has_changed
-- Whether the log of a graph has a change by actor :actor.
SELECT EXISTS (SELECT 1 FROM changes WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND actor = :actor);

-- name: find_touched
-- These changes, and what they touched.
SELECT revision, ids FROM changes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :since
    AND (:until::bigint IS NULL OR revision <= :until)
    AND (:actor::text IS NULL OR actor = :actor)
ORDER BY revision;

-- name: touched_lineages
-- The lineages among these ids that the revisions :revisions wrote, as they are now, and whether they have observations,
-- relations or children that others made. A relation of others counts also if those revisions gave it other properties. A
-- child does not count if it had the lineage as its parent before the lineage was restored. Archiving an expired node (by
-- the operation :archived_by) is nobody's change. Each row is looked up by the last column of a key (ADR 32).
WITH written AS (
    SELECT node_id, min(version) AS first, max(version) AS last, min(added_revision) AS since FROM node_versions
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = ANY (:ids::uuid[])
        AND added_revision = ANY (:revisions::bigint[])
    GROUP BY node_id
)
SELECT node.id, node.removed_revision IS NULL AS lives,
    coalesce(node.expires_at <= statement_timestamp(), false) AS expired, node.created_at, written.first > 1 AS existed,
    result.placeholder AS placed, EXISTS (
        SELECT 1 FROM node_versions version
        WHERE version.tenant_id = :tenant_id AND version.node_id = node.id AND version.version > written.first
            AND version.added_revision <> ALL (:revisions) AND NOT EXISTS (
                SELECT 1 FROM changes change
                WHERE change.tenant_id = :tenant_id AND change.graph_id = :graph_id
                    AND change.revision = version.added_revision AND change.operation = :archived_by
            )
        ORDER BY version.version OFFSET 0
    ) AS changed_later, EXISTS (
        SELECT 1 FROM observations observation
        WHERE observation.tenant_id = :tenant_id AND observation.node_id = node.id
            AND observation.removed_revision IS NULL AND observation.added_revision <> ALL (:revisions)
    ) AS observed, node.id IN (
        SELECT from_node FROM relations
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
            AND added_revision <> ALL (:revisions)
    ) OR node.id IN (
        SELECT to_node FROM relations
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
            AND added_revision <> ALL (:revisions)
    ) OR node.id IN (
        SELECT unnest(ARRAY[former.from_node, former.to_node]) FROM relations former
        JOIN relations edge ON edge.tenant_id = :tenant_id AND edge.id = former.version_of
        WHERE former.tenant_id = :tenant_id AND former.graph_id = :graph_id AND former.removed_revision = ANY (:revisions)
            AND former.added_revision <> ALL (:revisions)
            AND edge.removed_revision IS NULL
    ) AS related, EXISTS (
        SELECT 1 FROM (
            SELECT version_id FROM nodes
            WHERE tenant_id = :tenant_id AND same_key(parent_id, node.id) AND removed_revision IS NULL
            ORDER BY parent_id OFFSET 0
        ) AS child
        CROSS JOIN LATERAL (
            SELECT added_revision FROM node_versions
            WHERE tenant_id = :tenant_id AND same_key(id, child.version_id) ORDER BY id LIMIT 1
        ) AS version
        WHERE version.added_revision > written.since AND version.added_revision <> ALL (:revisions)
    ) AS above, node.name, node.kind, node.content, node.summary, node.tags, node.importance, node.metadata,
    node.parent_id, node.status, node.source, node.thread, node.said_at, node.freshness_at, node.ttl_days,
    node.expires_at, node.last_dedup_at, node.placeholder, node.reason, node.said_offset
FROM written
CROSS JOIN LATERAL (SELECT * FROM nodes WHERE tenant_id = :tenant_id AND id = written.node_id LIMIT 1) AS node
CROSS JOIN LATERAL (
    SELECT placeholder FROM node_versions WHERE tenant_id = :tenant_id AND node_id = written.node_id
        AND version >= written.last
    ORDER BY version LIMIT 1
) AS result
ORDER BY node.id;

-- name: lineages_before
-- The version that each of these lineages had before the first one that the revisions :revisions wrote, if it is kept.
SELECT b.node_id, b.deleted, coalesce(b.expires_at <= statement_timestamp(), false) AS expired,
    coalesce(b.began_at, n.created_at) AS began_at, b.based_on, b.name, b.kind, b.content, b.summary, b.tags,
    b.importance, b.metadata, b.parent_id, b.status, b.source, b.thread, b.said_at, b.freshness_at, b.ttl_days,
    b.expires_at, b.last_dedup_at, b.placeholder, b.reason, b.said_offset
FROM (
    SELECT node_id, min(version) AS first FROM node_versions
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = ANY (:ids::uuid[])
        AND added_revision = ANY (:revisions::bigint[])
    GROUP BY node_id
) AS w
CROSS JOIN LATERAL (
    SELECT * FROM node_versions WHERE tenant_id = :tenant_id AND node_id = w.node_id AND version < w.first
    ORDER BY version DESC LIMIT 1
) AS b
CROSS JOIN LATERAL (SELECT created_at FROM nodes WHERE tenant_id = :tenant_id AND id = b.node_id LIMIT 1) AS n;

-- name: sibling_heads
-- The heads of these lineages but the highest, in order of their numbers: those of now (`stands`), and those before the
-- first version that the revisions :revisions wrote (`stood`); at most :limit.
SELECT s.id, s.node_id, s.stood, s.superseded_revision IS NULL AS stands, s.name, s.kind, s.content, s.summary, s.tags,
    s.importance, s.metadata, s.parent_id, s.status, s.source, s.thread, s.said_at, s.freshness_at, s.ttl_days,
    s.expires_at, s.last_dedup_at, s.placeholder, s.reason, s.said_offset
FROM (
    SELECT node_id, min(version) AS first, min(added_revision) AS since FROM node_versions
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = ANY (:ids::uuid[])
        AND added_revision = ANY (:revisions::bigint[])
    GROUP BY node_id
) AS w
CROSS JOIN LATERAL (
    SELECT v.*, (v.superseded_revision IS NULL OR v.superseded_revision >= w.since) AND EXISTS (
        SELECT 1 FROM node_versions h
        WHERE h.tenant_id = :tenant_id AND h.node_id = w.node_id AND h.version > v.version AND h.version < w.first
        ORDER BY h.version OFFSET 0
    ) AS stood
    FROM node_versions v
    WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id AND v.node_id = w.node_id AND v.sibling
    ORDER BY v.version OFFSET 0
) AS s
WHERE s.stood OR s.superseded_revision IS NULL
ORDER BY s.node_id, s.version
LIMIT :limit;

-- name: touched_observations
-- The versions of observations, among these ids or of these nodes, that the revisions :revisions added or removed, and
-- whether somebody else wrote or removed a later one; at most :limit.
SELECT o.id, o.node_id, coalesce(n.name, '') AS entity, o.content, o.thread, coalesce(o.said_at, o.created_at) AS said_at,
    o.expires_at, o.created_by, o.status, o.reason, coalesce(o.first_revision, o.added_revision) AS first_revision,
    o.kind, o.tags, o.importance, o.source, o.metadata, o.version, o.said_offset,
    o.added_revision = ANY (:revisions::bigint[]) AS added, o.removed_revision IS NULL AS lives,
    coalesce(o.expires_at <= statement_timestamp(), false) AS expired, EXISTS (
        SELECT 1 FROM observations l
        WHERE l.tenant_id = :tenant_id AND l.id = o.id AND l.added_revision > o.added_revision
            AND (l.added_revision <> ALL (:revisions) OR l.removed_revision <> ALL (:revisions))
        ORDER BY l.added_revision OFFSET 0
    ) AS changed_later
FROM observations o
JOIN nodes n ON n.tenant_id = :tenant_id AND n.id = o.node_id
WHERE o.tenant_id = :tenant_id AND o.graph_id = :graph_id
    AND (o.id = ANY (:ids::uuid[]) OR o.node_id = ANY (:ids::uuid[]))
    AND (o.added_revision = ANY (:revisions) OR o.removed_revision = ANY (:revisions))
ORDER BY o.added_revision, o.id
LIMIT :limit;

-- name: touched_relations
-- All versions of the relations among these ids, those of one relation together, the first one first. `added`, `removed`:
-- by the revisions :revisions.
SELECT coalesce(version_of, id) AS id, graph_id, from_node, to_graph, to_node, type, metadata, ordinal, created_at,
    created_by, coalesce(updated_at, created_at) AS updated_at, added_revision = ANY (:revisions::bigint[]) AS added,
    coalesce(removed_revision = ANY (:revisions), false) AS removed, removed_revision IS NULL AS lives
FROM relations
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND (id = ANY (:ids::uuid[]) OR version_of = ANY (:ids::uuid[]))
ORDER BY 1, added_revision;

-- name: touched_aliases
-- The aliases that the revisions :revisions added or removed. The log may not name their nodes: a node that gains or loses
-- an alias gets no new version.
SELECT node_id, name, added_revision = ANY (:revisions::bigint[]) AS added FROM aliases
WHERE tenant_id = :tenant_id AND graph_id = :graph_id
    AND (added_revision = ANY (:revisions) AND removed_revision IS NULL
        OR removed_revision = ANY (:revisions) AND added_revision <> ALL (:revisions));

-- name: owners_of_names
-- The nodes that have these names, or other forms of them. An expired node does not count: it gives its name away.
SELECT DISTINCT n.name, n.id
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL forms_of(:tenant_id, :graph_id, wanted.name) AS n
WHERE is_current(n.expires_at);

-- name: names_at
-- The names that nodes had at a revision.
SELECT n.node_id AS id, n.name
FROM unnest(:node_ids::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT * FROM version_at(:tenant_id, wanted.id, :at_revision) v
    WHERE v.graph_id = :graph_id AND v.name IS NOT NULL
    OFFSET 0
) AS n;

-- name: find_living
-- Those of these nodes that live, in whichever of the tenant's graphs.
SELECT id FROM nodes WHERE tenant_id = :tenant_id AND id = ANY (:node_ids::uuid[]) AND removed_revision IS NULL;

-- name: list_ancestor_parents
-- These nodes and all their ancestors, each with its parent. Each level is looked up by itself, as in the hierarchy.
WITH RECURSIVE above AS (
    SELECT id, parent_id FROM nodes WHERE tenant_id = :tenant_id AND id = ANY (:node_ids::uuid[])
    UNION
    SELECT p.id, p.parent_id FROM above a
    CROSS JOIN LATERAL (
        SELECT id, parent_id FROM nodes
        WHERE tenant_id = :tenant_id AND id = a.parent_id AND is_live(removed_revision)
        OFFSET 0
    ) AS p
)
SELECT id, parent_id FROM above;
