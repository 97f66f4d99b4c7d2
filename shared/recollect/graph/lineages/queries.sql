-- fragment: fits
-- Whether a node passes the filters: :kinds kinds, :tags tags (any of each, whatever their case), :status, :prefix of its
-- name; none filter nothing. It stands behind the version :after_version of the node :after_node, where that is not null.
(cardinality(:kinds::text[]) = 0
    OR lower(node.kind) = ANY (ARRAY(SELECT lower(wanted.kind) FROM unnest(:kinds) AS wanted (kind))))
    AND (cardinality(:tags::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(node.tags) AS own (tag)
        JOIN unnest(:tags::text[]) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag)))
    AND (:status::text IS NULL OR node.status = :status)
    AND (:prefix::text = '' OR starts_with(lower(node.name), lower(:prefix)))
    AND (:after_node::uuid IS NULL OR node.node_id >= :after_node
        AND (node.node_id > :after_node OR node.version < :after_version::integer));

-- fragment: has_siblings
-- Whether some node of the graph has several heads.
(SELECT EXISTS (SELECT 1 FROM node_versions
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND sibling AND superseded_revision IS NULL))

-- fragment: living
-- The live nodes of a graph; :as_of_revision, :as_of_time: those that lived at that revision and its time, where they are
-- not null.
SELECT node.id, node.kind, node.tags, node.status <> 'active' AS hidden,
    coalesce(nullif(node.summary, ''), node.content, node.name, '') AS text
FROM nodes node
WHERE :as_of_revision::bigint IS NULL AND node.tenant_id = :tenant_id AND node.graph_id = :graph_id
    AND node.removed_revision IS NULL AND NOT node.placeholder AND is_current(node.expires_at)
UNION ALL
SELECT node.node_id, node.kind, node.tags, node.status <> 'active' AS hidden,
    coalesce(nullif(node.summary, ''), node.content, node.name, '') AS text
FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) node
WHERE :as_of_revision::bigint IS NOT NULL AND NOT node.placeholder
    AND is_current_at(node.expires_at, :as_of_time::timestamptz);

-- fragment: labelled
-- The observations of live nodes of a graph that have a kind or tags of their own; in the past as `living`. The node of a
-- live observation is live unless it has expired, so that no node is looked up for each.
SELECT observation.id, observation.node_id, observation.kind, observation.tags,
    observation.status <> 'active' AS hidden, observation.content AS text
FROM observations observation
WHERE :as_of_revision::bigint IS NULL AND observation.tenant_id = :tenant_id AND observation.graph_id = :graph_id
    AND observation.removed_revision IS NULL AND (observation.kind IS NOT NULL OR observation.tags <> '{}')
    AND is_current(observation.expires_at) AND observation.node_id NOT IN (
        SELECT id FROM nodes
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp()
            AND removed_revision IS NULL
    )
UNION ALL
SELECT observation.id, observation.node_id, observation.kind, observation.tags,
    observation.status <> 'active' AS hidden, observation.content AS text
FROM observations_at(:tenant_id, :graph_id, :as_of_revision) observation
WHERE :as_of_revision::bigint IS NOT NULL AND (observation.kind IS NOT NULL OR observation.tags <> '{}')
    AND is_current_at(observation.expires_at, :as_of_time::timestamptz) AND observation.node_id NOT IN (
        SELECT node_id FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) WHERE expires_at <= :as_of_time::timestamptz
    );

-- name: find_versions
-- Versions of nodes by their own ids, in the order asked for.
SELECT v.*
FROM unnest(:version_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN LATERAL (
    SELECT * FROM versions
    WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND same_key(id, wanted.id)
    ORDER BY id LIMIT 1
) AS v
ORDER BY wanted.position;

-- name: find_numbered
-- One version of a node by its number.
SELECT * FROM versions WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = :node_id AND version = :number;

-- name: list_versions
-- Every version of a node, newest first, since it is no placeholder; only those before the number :before, where it is not
-- null.
SELECT * FROM versions
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = :node_id AND NOT placeholder
    AND (:before::integer IS NULL OR version < :before)
ORDER BY version DESC
OFFSET :offset
LIMIT :limit;

-- name: current_versions
-- The newest versions of live nodes of these graphs, in the order asked for. :placeholders: placeholders too. Each is
-- looked up by its id (ADR 32).
SELECT v.*
FROM unnest(:node_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN LATERAL (
    SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, wanted.id) ORDER BY id LIMIT 1
) AS n
CROSS JOIN LATERAL (
    SELECT * FROM versions WHERE tenant_id = :tenant_id AND same_key(id, n.version_id) ORDER BY id LIMIT 1
) AS v
WHERE n.graph_id = ANY (:graph_ids::uuid[]) AND n.removed_revision IS NULL AND (:placeholders OR NOT n.placeholder)
    AND is_current(n.expires_at)
ORDER BY wanted.position;

-- name: past_versions
-- The versions that were the heads of nodes at a revision and its time, of sibling heads the highest, in the order asked
-- for. :placeholders: of placeholders too.
SELECT v.*
FROM unnest(:node_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN LATERAL (
    SELECT * FROM version_at(:tenant_id, wanted.id, :as_of_revision) v
    WHERE v.graph_id = :graph_id AND (:placeholders OR NOT v.placeholder) AND is_current_at(v.expires_at, :as_of_time)
    OFFSET 0
) AS h
CROSS JOIN LATERAL (
    SELECT * FROM versions
    WHERE tenant_id = :tenant_id AND same_key(node_id, h.node_id) AND version = h.version
    ORDER BY node_id, version LIMIT 1
) AS v
ORDER BY wanted.position;

-- name: list_heads
-- The heads of live nodes, the siblings among them, that pass a filter: oldest node first, of each the newest first. Where
-- no node has siblings, as in most graphs, a page is read in the order of an index, from the index alone where nothing
-- is filtered.
(
    SELECT node.version_id
    FROM (
        SELECT node.node_id
        FROM (
            SELECT id AS node_id, version, kind, tags, status, name FROM nodes
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND NOT placeholder
                AND is_current(expires_at)
        ) AS node
        WHERE NOT -- include: has_siblings
            AND -- include: fits
        ORDER BY node.node_id
        OFFSET :offset
        LIMIT :limit
    ) AS page
    CROSS JOIN LATERAL (SELECT version_id FROM nodes WHERE tenant_id = :tenant_id AND id = page.node_id LIMIT 1) AS node
    ORDER BY page.node_id
)
UNION ALL (
    SELECT node.version_id
    FROM (
        SELECT id AS node_id, version, version_id, kind, tags, status, name FROM nodes
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND NOT placeholder
            AND is_current(expires_at)
        UNION ALL
        SELECT version.node_id, version.version, version.id, version.kind, version.tags, version.status, version.name
        FROM node_versions version
        JOIN nodes node ON node.tenant_id = :tenant_id AND node.id = version.node_id AND is_current(node.expires_at)
        WHERE version.tenant_id = :tenant_id AND version.graph_id = :graph_id AND version.sibling
            AND version.superseded_revision IS NULL
    ) AS node
    WHERE -- include: has_siblings
        AND -- include: fits
    ORDER BY node.node_id, node.version DESC
    OFFSET :offset
    LIMIT :limit
);

-- name: list_heads_of_author
-- The heads of live nodes that :author wrote and that pass a filter, in the same order. They are read in the order of the
-- index of current versions by author, however much others wrote, and each one's node is looked up (ADR 32).
SELECT node.id AS version_id
FROM node_versions node
CROSS JOIN LATERAL (
    SELECT version, expires_at FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, node.node_id) AND is_live(removed_revision) ORDER BY id LIMIT 1
) AS live
WHERE node.tenant_id = :tenant_id AND node.graph_id = :graph_id AND node.created_by = :author
    AND node.superseded_revision IS NULL AND NOT node.placeholder AND NOT node.deleted
    AND node.node_id >= coalesce(:after_node::uuid, '00000000-0000-0000-0000-000000000000')
    AND (node.version = live.version OR node.sibling) AND is_current(live.expires_at)
    AND -- include: fits
ORDER BY node.node_id, node.version DESC
OFFSET :offset
LIMIT :limit;

-- name: lineage_exists
-- Whether the graph has, or had, that lineage.
SELECT EXISTS (SELECT 1 FROM nodes WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = :node_id
    AND NOT placeholder);

-- fragment: past_heads
-- The heads of nodes, the siblings among them, that passed a filter at revision :as_of_revision and its time :as_of_time.
living AS MATERIALIZED (
    SELECT h.* FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) h WHERE NOT h.placeholder
        AND is_current_at(h.expires_at, :as_of_time)
)
SELECT node.id AS version_id
FROM (
    SELECT id, node_id, version, kind, tags, status, name, created_by FROM living
    UNION ALL
    SELECT v.id, v.node_id, v.version, v.kind, v.tags, v.status, v.name, v.created_by FROM node_versions v
    JOIN living h ON h.node_id = v.node_id AND v.version < h.version
    WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id AND v.sibling
        AND is_live_at(v.superseded_revision, :as_of_revision)
) AS node
WHERE -- include: fits;

-- name: list_heads_at
-- All of them: oldest node first, of each the newest first.
WITH -- include: past_heads
ORDER BY node.node_id, node.version DESC
OFFSET :offset
LIMIT :limit;

-- name: list_heads_of_author_at
-- Those that :author wrote, in the same order.
WITH -- include: past_heads
    AND node.created_by = :author
ORDER BY node.node_id, node.version DESC
OFFSET :offset
LIMIT :limit;

-- name: past_conflicts
-- The heads of nodes that had several at revision :as_of_revision, newest first.
SELECT h.node_id, array_prepend(h.id, array_agg(v.id ORDER BY v.version DESC)) AS heads
FROM node_versions v
JOIN nodes_at(:tenant_id, :graph_id, :as_of_revision) h ON h.node_id = v.node_id AND v.version < h.version
WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id AND v.node_id = ANY (:node_ids::uuid[]) AND v.sibling
    AND is_live_at(v.superseded_revision, :as_of_revision)
GROUP BY h.node_id, h.id;

-- name: describe_kinds
-- Kinds of the live nodes of a graph and of their observations, most used first, each with short texts of :examples of its
-- newest that are active, nodes before observations; and how many nodes there are at all.
WITH living AS (
    -- include: living
), labelled AS (
    -- include: labelled
), placed AS (
    SELECT coalesce(kind, '') AS kind, left(text, 120) AS text, is_node, hidden,
        row_number() OVER (PARTITION BY kind ORDER BY hidden, is_node DESC, id DESC) AS position
    FROM (
        SELECT id, kind, text, true AS is_node, hidden FROM living
        UNION ALL
        SELECT id, kind, text, false, hidden OR node_id IN (SELECT id FROM living WHERE hidden)
        FROM labelled WHERE kind IS NOT NULL
    ) AS memory
)
SELECT kind, count(*) FILTER (WHERE is_node) AS count, count(*) FILTER (WHERE NOT is_node) AS observations,
    coalesce(array_agg(text ORDER BY position) FILTER (WHERE position <= :examples AND NOT hidden), '{}') AS examples,
    (sum(count(*) FILTER (WHERE is_node)) OVER ())::bigint AS total
FROM placed
GROUP BY kind
ORDER BY count(*) DESC, kind
LIMIT :limit;

-- name: count_tags
-- Tags of the live nodes of a graph and of their observations that begin with :prefix, whatever their case, most used
-- first, as they are mostly spelt.
WITH living AS (
    -- include: living
), labelled AS (
    -- include: labelled
), tagged AS (
    SELECT living.id, true AS is_node, own.tag FROM living CROSS JOIN unnest(living.tags) AS own (tag)
    UNION ALL
    SELECT labelled.id, false, own.tag FROM labelled CROSS JOIN unnest(labelled.tags) AS own (tag)
)
SELECT mode() WITHIN GROUP (ORDER BY tag) AS tag, count(DISTINCT id) FILTER (WHERE is_node) AS count,
    count(DISTINCT id) FILTER (WHERE NOT is_node) AS observations
FROM tagged
WHERE starts_with(lower(tag), lower(:prefix))
GROUP BY lower(tag)
ORDER BY count(DISTINCT id) DESC, lower(tag)
OFFSET :offset
LIMIT :limit;

-- name: count_tag_prefixes
-- Prefixes of the tags `prefix:value` of the live nodes of a graph and of their observations, most used first, each with
-- the :values values used most.
WITH living AS (
    -- include: living
), labelled AS (
    -- include: labelled
), tagged AS (
    SELECT living.id, true AS is_node, own.tag FROM living CROSS JOIN unnest(living.tags) AS own (tag)
    UNION ALL
    SELECT labelled.id, false, own.tag FROM labelled CROSS JOIN unnest(labelled.tags) AS own (tag)
), valued AS (
    SELECT lower(split_part(tag, ':', 1)) AS prefix, min(split_part(tag, ':', 1)) AS spelt,
        mode() WITHIN GROUP (ORDER BY substr(tag, strpos(tag, ':') + 1)) AS value,
        count(DISTINCT id) FILTER (WHERE is_node) AS nodes, count(DISTINCT id) FILTER (WHERE NOT is_node) AS observations
    FROM tagged
    WHERE tag ~ '^[^:]+:.'
    GROUP BY lower(tag), 1
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY prefix ORDER BY nodes + observations DESC, value) AS position FROM valued
)
SELECT min(spelt) AS prefix, sum(nodes)::bigint AS count, sum(observations)::bigint AS observations,
    array_agg(value ORDER BY position) FILTER (WHERE position <= :values) AS values
FROM placed
GROUP BY placed.prefix
ORDER BY sum(nodes + observations) DESC, placed.prefix
LIMIT :limit;
