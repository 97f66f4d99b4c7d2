-- fragment: comparable
-- Whether a node n of a graph is a live and active entity: these are compared with each other. An outdated or
-- archived entity is not: merged with an active one, it would hide the text of that, or its own text would come back.
n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL AND n.name IS NOT NULL
    AND NOT n.placeholder AND n.status = 'active' AND is_current(n.expires_at)

-- fragment: profile
-- The fields by which an entity n is compared: all in lower case, observations as hashes.
n.id, coalesce(n.kind, '') AS kind, lower(n.name) AS name, t.tags, o.statements
FROM nodes n
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT lower(tag)), '{}') AS tags FROM unnest(n.tags) AS tag
) AS t
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT hashtextextended(lower(content), 0)), '{}') AS statements FROM observations
    WHERE tenant_id = :tenant_id AND node_id = n.id AND removed_revision IS NULL AND status = 'active'
        AND is_current(expires_at)
) AS o

-- name: count_comparable
-- The number of entities of a graph to compare with each other, counted up to :limit.
SELECT count(*) FROM (
    SELECT 1 FROM nodes n
    WHERE -- include: comparable
    LIMIT :limit
) AS comparable;

-- name: count_of_kind
-- The number of those of one type.
SELECT count(*) FROM (
    SELECT 1 FROM nodes n
    WHERE -- include: comparable
        AND coalesce(n.kind, '') = :kind
    LIMIT :limit
) AS comparable;

-- name: count_comparable_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT count(*) FROM (
    SELECT 1 FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
    WHERE name IS NOT NULL AND NOT placeholder AND status = 'active' AND is_current_at(expires_at, :as_of_time)
    LIMIT :limit
) AS comparable;

-- name: list_profiles
-- plan: once from here
-- The profiles of entities, oldest first, of the type :kind (null: any).
SELECT -- include: profile
WHERE -- include: comparable
    AND (:kind::text IS NULL OR coalesce(n.kind, '') = :kind)
ORDER BY n.created_at, n.id;

-- name: list_profiles_at
-- plan: once from here
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT n.node_id AS id, coalesce(n.kind, '') AS kind, lower(n.name) AS name, t.tags, o.statements
FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) n
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT lower(tag)), '{}') AS tags FROM unnest(n.tags) AS tag
) AS t
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT hashtextextended(lower(content), 0)), '{}') AS statements
    FROM statements_about(:tenant_id, :graph_id, n.node_id, :as_of_revision, :as_of_time)
) AS o
WHERE n.name IS NOT NULL AND NOT n.placeholder AND n.status = 'active' AND is_current_at(n.expires_at, :as_of_time)
    AND (:kind::text IS NULL OR coalesce(n.kind, '') = :kind)
ORDER BY coalesce(n.began_at, node_created_at(:tenant_id, n.node_id)), n.node_id;

-- name: profiles_of
-- The profiles of these entities of a graph.
SELECT -- include: profile
WHERE -- include: comparable
    AND n.id = ANY (:node_ids::uuid[]);

-- name: find_uncompared
-- Of the entities that changed since they were last compared, and not after :until, those of one type, the first by
-- name; at most :limit. With :type_hash and :node_id: of all entities that did not change after :until, the next behind this
-- position (the type as a number, since a cursor holds no text, and the id), also those that were compared.
WITH due AS (
    SELECT id, coalesce(kind, '') AS kind, hashtextextended(coalesce(kind, ''), 0) AS type_hash FROM nodes n
    WHERE -- include: comparable
        AND updated_at <= :until AND CASE
            WHEN :type_hash::bigint IS NULL THEN last_dedup_at IS NULL OR updated_at > last_dedup_at
            ELSE (hashtextextended(coalesce(kind, ''), 0), id) > (:type_hash, :node_id::uuid)
        END
)
SELECT id, kind, type_hash FROM due
WHERE kind = (SELECT kind FROM due ORDER BY CASE WHEN :type_hash::bigint IS NOT NULL THEN type_hash END, kind LIMIT 1)
ORDER BY id
LIMIT :limit;

-- name: remove_duplicates
-- Delete the proposals with one of these entities.
DELETE FROM duplicates
WHERE tenant_id = :tenant_id AND graph_id = :graph_id
    AND (node_id = ANY (:node_ids::uuid[]) OR other_id = ANY (:node_ids::uuid[]));

-- name: insert_duplicates
-- Store proposed pairs whose entities are both live and active, unless they were dismissed. Each is looked up by its
-- key (ADR 32).
INSERT INTO duplicates (tenant_id, graph_id, node_id, other_id, likeness, found_at)
SELECT :tenant_id, :graph_id, proposed.node_id, proposed.other_id, proposed.likeness, :proposed_at
FROM unnest(:node_ids::uuid[], :other_ids::uuid[], :likenesses::double precision[])
    AS proposed (node_id, other_id, likeness)
CROSS JOIN LATERAL (
    SELECT 1 FROM nodes
    WHERE tenant_id = :tenant_id AND id = proposed.node_id AND is_live(removed_revision) AND status = 'active' OFFSET 0
) AS node
CROSS JOIN LATERAL (
    SELECT 1 FROM nodes
    WHERE tenant_id = :tenant_id AND id = proposed.other_id AND is_live(removed_revision) AND status = 'active' OFFSET 0
) AS other
WHERE NOT EXISTS (
    SELECT 1 FROM dismissals
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = proposed.node_id AND other_id = proposed.other_id
)
ON CONFLICT (tenant_id, graph_id, node_id, other_id)
DO UPDATE SET likeness = excluded.likeness, found_at = excluded.found_at
RETURNING node_id, other_id, likeness;

-- name: list_duplicates
-- Proposed pairs whose entities are both live, active and still of one type, with a similarity of at least
-- :min_likeness, the most similar first; at most :limit.
SELECT d.node_id, d.other_id, d.likeness, n.name, o.name AS other, n.created_at, o.created_at AS other_created_at
FROM duplicates d
JOIN nodes n ON n.tenant_id = :tenant_id AND n.id = d.node_id AND n.removed_revision IS NULL
    AND n.status = 'active' AND is_current(n.expires_at)
JOIN nodes o ON o.tenant_id = :tenant_id AND o.id = d.other_id AND o.removed_revision IS NULL
    AND o.status = 'active' AND coalesce(o.kind, '') = coalesce(n.kind, '') AND is_current(o.expires_at)
WHERE d.tenant_id = :tenant_id AND d.graph_id = :graph_id AND d.likeness >= :min_likeness
ORDER BY d.likeness DESC, d.node_id, d.other_id
OFFSET :offset
LIMIT :limit;

-- name: count_duplicates
-- The number of proposed pairs that list_duplicates finds, of any similarity, counted up to :limit, among the first
-- :searched that are stored. Entities are looked up by their keys (ADR 32).
SELECT count(*) FROM (
    SELECT 1 FROM (
        SELECT node_id, other_id FROM duplicates WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        ORDER BY node_id, other_id
        LIMIT :searched
    ) AS d
    CROSS JOIN LATERAL (
        SELECT coalesce(kind, '') AS kind FROM nodes
        WHERE tenant_id = :tenant_id AND id = d.node_id AND is_live(removed_revision) AND status = 'active'
            AND coalesce(expires_at > statement_timestamp(), true)
        OFFSET 0
    ) AS n
    CROSS JOIN LATERAL (
        SELECT 1 FROM nodes
        WHERE tenant_id = :tenant_id AND id = d.other_id AND is_live(removed_revision) AND status = 'active'
            AND coalesce(expires_at > statement_timestamp(), true) AND coalesce(kind, '') = n.kind
        OFFSET 0
    ) AS o
    LIMIT :limit
) AS proposed;

-- name: remove_duplicate
-- Delete the proposal of one pair, and return how similar its entities are, if there was such a proposal.
DELETE FROM duplicates
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND node_id = :node_id AND other_id = :other_id
RETURNING likeness;

-- name: raise_compared_from
-- Record that not every pair of a graph below :threshold is known.
UPDATE deduplications SET threshold = :threshold WHERE tenant_id = :tenant_id AND graph_id = :graph_id
    AND threshold < :threshold;

-- name: finish_deduplication
-- Record the end of a pass over a graph and, if it covered all entities, its threshold (:threshold).
INSERT INTO deduplications AS d (tenant_id, graph_id, finished_at, threshold) VALUES (:tenant_id, :graph_id,
    statement_timestamp(), :threshold)
ON CONFLICT (tenant_id, graph_id)
DO UPDATE SET finished_at = excluded.finished_at, threshold = coalesce(excluded.threshold, d.threshold);

-- name: find_compared_from
-- The threshold from which all entities of a graph were compared; null if there is none.
SELECT threshold FROM deduplications WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: tenants_with_deduplication_due
-- Tenants with graphs for which a pass is due; read before a tenant is known.
SELECT tenant_id FROM tenants_with_deduplication_due();

-- name: list_deduplications
-- Graphs with `dedup` in their metadata, and when the last pass over each ended; at most :limit.
SELECT g.id, g.metadata, d.finished_at FROM graphs g
LEFT JOIN deduplications d ON d.tenant_id = :tenant_id AND d.graph_id = g.id
WHERE g.tenant_id = :tenant_id AND g.metadata #>> '{dedup,mode}' IN ('propose', 'merge')
ORDER BY d.finished_at NULLS FIRST, g.name
LIMIT :limit;
