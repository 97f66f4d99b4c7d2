-- fragment: fits
-- Whether a node n passes the filters: $3 kinds, $4 tags (any of them, whatever their case); none filter nothing.
(cardinality($3::text[]) = 0 OR n.kind = ANY ($3))
    AND (cardinality($4::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest($4::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)));

-- fragment: living
-- The live nodes of a graph; $3, $4: those that lived at that revision and its time, where they are not null.
SELECT n.id, n.kind, n.tags, coalesce(nullif(n.summary, ''), n.content, n.name, '') AS text
FROM nodes n
WHERE $3::bigint IS NULL AND n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND NOT n.placeholder
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
UNION ALL
SELECT n.node_id, n.kind, n.tags, coalesce(nullif(n.summary, ''), n.content, n.name, '') AS text
FROM nodes_at($1, $2, $3) n
WHERE $3::bigint IS NOT NULL AND NOT n.placeholder AND (n.expires_at IS NULL OR n.expires_at > $4::timestamptz);

-- name: find_versions
-- Versions of nodes by their own ids, in the order asked for.
SELECT v.*
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN versions v ON v.tenant_id = $1 AND v.graph_id = $2 AND v.id = wanted.id
ORDER BY wanted.place;

-- name: find_numbered
-- One version of a node by its number.
SELECT * FROM versions WHERE tenant_id = $1 AND graph_id = $2 AND node_id = $3 AND version = $4;

-- name: list_versions
-- Every version of a node, newest first, since it is no placeholder.
SELECT * FROM versions
WHERE tenant_id = $1 AND graph_id = $2 AND node_id = $3 AND NOT placeholder
ORDER BY version DESC
OFFSET $4
LIMIT $5;

-- name: current_versions
-- The newest versions of live nodes of these graphs, in the order asked for. $4: placeholders too.
SELECT v.*
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN nodes n ON n.tenant_id = $1 AND n.graph_id = ANY ($2::uuid[]) AND n.id = wanted.id AND n.removed_revision IS NULL
    AND ($4 OR NOT n.placeholder) AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
JOIN versions v ON v.tenant_id = $1 AND v.node_id = n.id AND v.version = n.version
ORDER BY wanted.place;

-- name: versions_at
-- The versions that were the heads of nodes at a revision and its time, of sibling heads the highest, in the order asked
-- for. $6: of placeholders too.
SELECT v.*
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN nodes_at($1, $2, $4) h ON h.node_id = wanted.id AND ($6 OR NOT h.placeholder) AND (h.expires_at IS NULL OR h.expires_at > $5)
JOIN versions v ON v.tenant_id = $1 AND v.id = h.id
ORDER BY wanted.place;

-- name: list_current
-- The heads of live nodes, the siblings among them, that pass a filter: oldest node first, of each the newest first.
SELECT n.version_id
FROM (
    SELECT id AS node_id, version, version_id, kind, tags FROM nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND NOT placeholder
        AND (expires_at IS NULL OR expires_at > statement_timestamp())
    UNION ALL
    SELECT v.node_id, v.version, v.id, v.kind, v.tags FROM node_versions v
    JOIN nodes h ON h.tenant_id = $1 AND h.id = v.node_id AND (h.expires_at IS NULL OR h.expires_at > statement_timestamp())
    WHERE v.tenant_id = $1 AND v.graph_id = $2 AND v.sibling AND v.superseded_revision IS NULL
) AS n
WHERE -- include: fits
ORDER BY n.node_id, n.version DESC
OFFSET $5
LIMIT $6;

-- name: lineage_exists
-- Whether the graph has, or had, that lineage.
SELECT EXISTS (SELECT 1 FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND id = $3 AND NOT placeholder);

-- name: list_past
-- The heads of nodes, the siblings among them, that passed a filter at revision $7 and its time $8: oldest node first, of
-- each the newest first.
WITH living AS MATERIALIZED (
    SELECT h.* FROM nodes_at($1, $2, $7) h WHERE NOT h.placeholder AND (h.expires_at IS NULL OR h.expires_at > $8)
)
SELECT n.id AS version_id
FROM (
    SELECT id, node_id, version, kind, tags FROM living
    UNION ALL
    SELECT v.id, v.node_id, v.version, v.kind, v.tags FROM node_versions v
    JOIN living h ON h.node_id = v.node_id AND v.version < h.version
    WHERE v.tenant_id = $1 AND v.graph_id = $2 AND v.sibling
        AND (v.superseded_revision IS NULL OR v.superseded_revision > $7)
) AS n
WHERE -- include: fits
ORDER BY n.node_id, n.version DESC
OFFSET $5
LIMIT $6;

-- name: heads_at
-- The heads of nodes that had several at revision $4, newest first.
SELECT h.node_id, array_prepend(h.id, array_agg(v.id ORDER BY v.version DESC)) AS heads
FROM node_versions v
JOIN nodes_at($1, $2, $4) h ON h.node_id = v.node_id AND v.version < h.version
WHERE v.tenant_id = $1 AND v.graph_id = $2 AND v.node_id = ANY ($3::uuid[]) AND v.sibling
    AND (v.superseded_revision IS NULL OR v.superseded_revision > $4)
GROUP BY h.node_id, h.id;

-- name: describe_kinds
-- Kinds of the live nodes of a graph, most used first, each with short texts of $5 of its newest; and how many nodes there
-- are at all.
WITH living AS (
    -- include: living
), placed AS (
    SELECT coalesce(kind, '') AS kind, left(text, 120) AS text, row_number() OVER (PARTITION BY kind ORDER BY id DESC) AS place
    FROM living
)
SELECT kind, count(*) AS count, array_agg(text ORDER BY place) FILTER (WHERE place <= $5) AS examples,
    (sum(count(*)) OVER ())::bigint AS total
FROM placed
GROUP BY kind
ORDER BY count DESC, kind
LIMIT $6;

-- name: count_tags
-- Tags of the live nodes of a graph that begin with $5, whatever their case, most used first, as they are mostly spelt.
WITH living AS (
    -- include: living
)
SELECT mode() WITHIN GROUP (ORDER BY t.tag) AS tag, count(DISTINCT l.id) AS count
FROM living l CROSS JOIN unnest(l.tags) AS t (tag)
WHERE starts_with(lower(t.tag), lower($5))
GROUP BY lower(t.tag)
ORDER BY count DESC, lower(t.tag)
OFFSET $7
LIMIT $6;

-- name: count_tag_prefixes
-- Prefixes of the tags `prefix:value` of the live nodes of a graph, most used first, each with the $5 values used most.
WITH living AS (
    -- include: living
), valued AS (
    SELECT lower(split_part(t.tag, ':', 1)) AS prefix, min(split_part(t.tag, ':', 1)) AS spelt,
        mode() WITHIN GROUP (ORDER BY substr(t.tag, strpos(t.tag, ':') + 1)) AS value, count(DISTINCT l.id) AS uses
    FROM living l CROSS JOIN unnest(l.tags) AS t (tag)
    WHERE t.tag ~ '^[^:]+:.'
    GROUP BY lower(t.tag), 1
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY prefix ORDER BY uses DESC, value) AS place FROM valued
)
SELECT min(spelt) AS prefix, sum(uses)::bigint AS count, array_agg(value ORDER BY place) FILTER (WHERE place <= $5) AS values
FROM placed
GROUP BY placed.prefix
ORDER BY count DESC, placed.prefix
LIMIT $6;
