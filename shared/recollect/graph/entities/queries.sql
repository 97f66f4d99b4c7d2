-- name: insert_entities
-- New entities. A placeholder of the same name, or of another form of it, becomes the entity under the name that it has; a
-- name that is taken is skipped. The versions follow by append_versions.
INSERT INTO nodes AS n (tenant_id, graph_id, id, version, version_id, name, kind, tags, importance, metadata, source,
    content, labels, labels_version, added_revision, created_at, created_by, updated_at)
SELECT :tenant_id, :graph_id, i.id, 1, i.version_id, coalesce((
    SELECT known.name FROM nodes_named(:tenant_id, :graph_id, i.name) AS known
), i.name), i.kind, i.tags, i.importance, i.metadata, i.source,
    i.content, i.labels, i.labels_version, :revision, :revision_time, :subject, :revision_time
FROM jsonb_to_recordset(:entities::jsonb) AS i (id uuid, version_id uuid, name text, kind text, tags text[],
    importance double precision, metadata jsonb, source text, content text, labels tsvector, labels_version smallint)
ON CONFLICT (tenant_id, graph_id, name) WHERE removed_revision IS NULL AND name IS NOT NULL
DO UPDATE SET version = n.version + 1, version_id = excluded.version_id, kind = excluded.kind,
    tags = excluded.tags, importance = excluded.importance, metadata = excluded.metadata,
    source = excluded.source, content = excluded.content, labels = excluded.labels,
    labels_version = excluded.labels_version, placeholder = false, created_at = excluded.created_at,
    created_by = excluded.created_by, updated_at = excluded.updated_at
WHERE n.placeholder
RETURNING n.id, n.version_id, n.name, n.version > 1 AS promoted;

-- name: find_similar_names
-- Live entities whose names differ from those of the entities :ids (:names) in case, in width and the like only: of each, up
-- to :limit, oldest first. They are searched through the view (as all that needs lower() and the like), each in the order of
-- an index: lower() finds names that are in normal form NFKC, and the other index has the rest.
SELECT w.id AS like_id, a.id, a.name
FROM (
    SELECT id, look_alike_key(name) AS key FROM unnest(:ids::uuid[], :names::text[]) AS u (id, name) OFFSET 0
) AS w
CROSS JOIN LATERAL (
    SELECT id, name FROM (
        (SELECT id, name FROM search_nodes
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND name IS NOT NULL
            AND same_key(lower(name), w.key) AND id <> w.id AND NOT placeholder
            AND coalesce(expires_at > statement_timestamp(), true)
        ORDER BY lower(name), id LIMIT :limit)
        UNION ALL
        (SELECT id, name FROM search_nodes
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
            AND nullif(look_alike_key(name), lower(name)) BETWEEN w.key AND w.key AND id <> w.id AND NOT placeholder
            AND coalesce(expires_at > statement_timestamp(), true)
        ORDER BY nullif(look_alike_key(name), lower(name)), id LIMIT :limit)
    ) AS l
    ORDER BY id LIMIT :limit
) AS a;

-- fragment: called
-- The live node n with the name of a row of `wanted`, exactly or in another form.
CROSS JOIN LATERAL nodes_named(:tenant_id, :graph_id, wanted.name) AS node

-- fragment: shown
-- The columns of an entity, with the name of its parent where that is live; no observations where they were not read.
node.id, node.name, node.kind, node.content, node.tags, node.importance, node.created_at, node.updated_at, node.status,
CASE WHEN bound.holds THEN observation.observations END AS observations, (
    SELECT parent.name FROM nodes parent WHERE parent.tenant_id = :tenant_id AND parent.id = node.parent_id
        AND parent.removed_revision IS NULL AND is_current(parent.expires_at)
) AS parent

-- fragment: said
-- The active observations of an entity, oldest first; none are read where all of the answer exceed its bound.
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(observation.content
        ORDER BY coalesce(observation.first_revision, observation.added_revision), observation.id), '{}') AS observations
    FROM observations observation
    WHERE bound.holds AND observation.tenant_id = :tenant_id AND observation.node_id = node.id
        AND observation.removed_revision IS NULL AND observation.status = 'active' AND is_current(observation.expires_at)
) AS observation

-- fragment: shown_at
-- The columns of an entity as it was at a revision and its time.
node.node_id AS id, node.name, node.kind, node.content, node.tags, node.importance, node.status,
CASE WHEN bound.holds THEN stated.observations END AS observations, coalesce(node.began_at, (
        SELECT created_at FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, node.node_id) ORDER BY id LIMIT 1
    )) AS created_at, changed_at(:tenant_id, :graph_id, node.node_id, node.created_at, :as_of_revision) AS updated_at, (
        SELECT parent.name FROM version_at(:tenant_id, node.parent_id, :as_of_revision) parent
        WHERE parent.graph_id = :graph_id AND is_current_at(parent.expires_at, :as_of_time)
    ) AS parent

-- fragment: statements_at
-- The observations of the node that were active at a revision and its time.
SELECT * FROM observations
WHERE tenant_id = :tenant_id AND same_key(node_id, node.node_id) AND status = 'active'
    AND added_revision <= :as_of_revision AND is_live_at(removed_revision, :as_of_revision)
    AND is_current_at(expires_at, :as_of_time)
ORDER BY node_id OFFSET 0

-- fragment: said_at
-- The active observations of an entity at a revision and its time, oldest first, as above.
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(observation.content
        ORDER BY coalesce(observation.first_revision, observation.added_revision), observation.id), '{}') AS observations
    FROM (
        -- include: statements_at
    ) AS observation
    WHERE bound.holds
) AS stated

-- fragment: bound_of_nodes
-- Whether all active observations of these nodes, now or, where :as_of_revision is not null, at that revision and its time
-- :as_of_time, fit :max_bytes (null: no bound), with three bytes of each for JSON. It is computed once, and before they are
-- read; long texts are not fetched for their length.
SELECT :max_bytes::bigint IS NULL OR (:max_bytes >= 0 AND :max_bytes >= (
    SELECT coalesce(sum(size.bytes), 0)::bigint
    FROM unnest(:node_ids::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT sum(octet_length(observation.content) + 3) AS bytes FROM (
            SELECT content FROM observations
            WHERE tenant_id = :tenant_id AND same_key(node_id, wanted.id) AND status = 'active' AND CASE
                    WHEN :as_of_revision::bigint IS NULL THEN removed_revision IS NULL
                    ELSE added_revision <= :as_of_revision AND is_live_at(removed_revision, :as_of_revision)
                END AND is_current_at(expires_at, coalesce(:as_of_time, statement_timestamp()))
            ORDER BY node_id OFFSET 0
        ) AS observation
    ) AS size
)) AS holds

-- name: measure_observations
-- plan: once from here
-- How many active observations nodes have, and their size in bytes with three of each for JSON. Long texts are not fetched.
SELECT wanted.id AS node_id, size.count, size.bytes
FROM unnest(:node_ids::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT count(*) AS count, coalesce(sum(octet_length(observation.content) + 3), 0)::bigint AS bytes FROM (
        SELECT content FROM observations
        WHERE tenant_id = :tenant_id AND same_key(node_id, wanted.id) AND removed_revision IS NULL
            AND status = 'active' AND is_current(expires_at)
        ORDER BY node_id OFFSET 0
    ) AS observation
) AS size;

-- name: measure_observations_at
-- plan: once from here
-- The same at a revision and its time.
SELECT node.node_id, size.count, size.bytes
FROM unnest(:node_ids::uuid[]) AS node (node_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS count, coalesce(sum(octet_length(observation.content) + 3), 0)::bigint AS bytes FROM (
        -- include: statements_at
    ) AS observation
) AS size;

-- name: newest_observations
-- The newest active observations of nodes, oldest first, as far as those of each fit :max_bytes, after :skipped newer ones.
-- They are read in an order that only the index observations_of_node has within a node, and no further than the shortest
-- texts could fit.
SELECT wanted.id AS node_id, s.observations
FROM unnest(:node_ids::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.first_revision, o.id), '{}') AS observations FROM (
        SELECT w.id, w.first_revision, w.content, sum(octet_length(w.content) + 3) OVER (
            ORDER BY w.first_revision DESC, w.id DESC ROWS UNBOUNDED PRECEDING
        ) AS bytes
        FROM (
            SELECT id, coalesce(first_revision, added_revision) AS first_revision, content FROM observations
            WHERE tenant_id = :tenant_id AND node_id = wanted.id AND removed_revision IS NULL
                AND status = 'active' AND is_current(expires_at)
            ORDER BY coalesce(first_revision, added_revision) DESC, id DESC
            OFFSET :skipped LIMIT :max_bytes / 4
        ) AS w
    ) AS o
    WHERE o.bytes <= :max_bytes
) AS s;

-- name: newest_observations_at
-- The same at a revision and its time.
SELECT n.node_id, s.observations
FROM unnest(:node_ids::uuid[]) AS n (node_id)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.since, o.id), '{}') AS observations FROM (
        SELECT w.id, w.since, w.content, sum(octet_length(w.content) + 3) OVER (
            ORDER BY w.since DESC, w.id DESC ROWS UNBOUNDED PRECEDING
        ) AS bytes
        FROM (
            SELECT id, coalesce(first_revision, added_revision) AS since, content FROM observations
            WHERE tenant_id = :tenant_id AND node_id = n.node_id AND status = 'active'
                AND added_revision <= :as_of_revision AND is_live_at(removed_revision, :as_of_revision)
                AND is_current_at(expires_at, :as_of_time)
            ORDER BY coalesce(first_revision, added_revision) DESC, id DESC
            OFFSET :skipped LIMIT :max_bytes / 4
        ) AS w
    ) AS o
    WHERE o.bytes <= :max_bytes
) AS s;

-- name: open_entities
-- plan: once from here
-- Entities by name with their observations, in the order of :names; without them where all together exceed :max_bytes.
-- Each entity is looked up by its name (ADR 32).
WITH bound AS MATERIALIZED (
    SELECT :max_bytes::bigint IS NULL OR (:max_bytes >= 0 AND :max_bytes >= (
        SELECT coalesce(sum(size.bytes), 0)::bigint
        FROM unnest(:names::text[]) AS wanted (name)
        -- include: called
        CROSS JOIN LATERAL (
            SELECT sum(octet_length(observation.content) + 3) AS bytes FROM observations observation
            WHERE observation.tenant_id = :tenant_id AND observation.node_id = node.id
                AND observation.removed_revision IS NULL AND observation.status = 'active'
                AND is_current(observation.expires_at)
        ) AS size
        WHERE NOT node.placeholder AND is_current(node.expires_at)
    )) AS holds
)
SELECT -- include: shown
FROM unnest(:names::text[]) WITH ORDINALITY AS wanted (name, position)
CROSS JOIN bound
-- include: called
-- include: said
WHERE NOT node.placeholder AND is_current(node.expires_at)
ORDER BY wanted.position;

-- name: open_entities_at
-- plan: once from here
-- Entities by name with their observations as they were at a revision and its time, in the order of :names;
-- without them where all together exceed :max_bytes.
WITH bound AS MATERIALIZED (
    SELECT :max_bytes::bigint IS NULL OR (:max_bytes >= 0 AND :max_bytes >= (
        SELECT coalesce(sum(octet_length(observation.content) + 3), 0)::bigint
        FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS given (name)) AS wanted
        CROSS JOIN LATERAL named_at(:tenant_id, :graph_id, wanted.name, :as_of_revision, :as_of_time) node
        CROSS JOIN LATERAL (
            -- include: statements_at
        ) AS observation
        WHERE NOT node.placeholder AND is_current_at(node.expires_at, :as_of_time)
    )) AS holds
)
SELECT -- include: shown_at
FROM unnest(:names::text[]) WITH ORDINALITY AS wanted (name, position)
CROSS JOIN bound
CROSS JOIN LATERAL named_at(:tenant_id, :graph_id, wanted.name, :as_of_revision, :as_of_time) node
-- include: said_at
WHERE NOT node.placeholder AND is_current_at(node.expires_at, :as_of_time)
ORDER BY wanted.position;

-- name: entities_by_id
-- plan: once from here
-- Entities by id with their observations, in the order of :node_ids; without them where all together exceed :max_bytes.
-- Each entity is looked up by its id (ADR 32).
WITH bound AS MATERIALIZED (
    -- include: bound_of_nodes
)
SELECT -- include: shown
FROM unnest(:node_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN bound
CROSS JOIN LATERAL (
    SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, wanted.id) ORDER BY id LIMIT 1
) AS node
-- include: said
WHERE node.removed_revision IS NULL AND node.name IS NOT NULL AND NOT node.placeholder AND is_current(node.expires_at)
ORDER BY wanted.position;

-- name: entities_by_id_at
-- plan: once from here
-- Entities by id with their observations as they were at a revision and its time, in the order of :node_ids;
-- without them where all together exceed :max_bytes.
WITH bound AS MATERIALIZED (
    -- include: bound_of_nodes
)
SELECT -- include: shown_at
FROM unnest(:node_ids::uuid[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN bound
CROSS JOIN LATERAL (
    SELECT * FROM version_at(:tenant_id, wanted.id, :as_of_revision) version WHERE version.graph_id = :graph_id OFFSET 0
) AS node
-- include: said_at
WHERE node.name IS NOT NULL AND NOT node.placeholder AND is_current_at(node.expires_at, :as_of_time)
ORDER BY wanted.position;

-- name: list_entity_ids
-- Live entities in order of creation. :kind: only this kind, where it is not null; :archived: archived ones, too.
SELECT id FROM nodes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND name IS NOT NULL
    AND NOT placeholder AND is_current(expires_at) AND (:kind::text IS NULL OR kind = :kind)
    AND (:archived::boolean OR status <> 'archived')
ORDER BY created_at, id
OFFSET :offset
LIMIT :limit;

-- name: list_entity_ids_at
-- Entities of a graph as they were at a revision and its time, in order of creation. :archived: archived ones, too.
SELECT n.node_id AS id
FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) n
WHERE n.name IS NOT NULL AND NOT n.placeholder AND is_current_at(n.expires_at, :as_of_time)
    AND (:kind::text IS NULL OR n.kind = :kind) AND (:archived::boolean OR n.status <> 'archived')
ORDER BY coalesce(n.began_at, (SELECT created_at FROM nodes WHERE tenant_id = :tenant_id AND id = n.node_id)), n.node_id
OFFSET :offset
LIMIT :limit;

-- name: count_kinds
-- How many live entities of each kind a graph has, most frequent first.
SELECT coalesce(kind, '') AS kind, count(*) AS count FROM nodes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND NOT placeholder
    AND name IS NOT NULL AND is_current(expires_at)
GROUP BY 1
ORDER BY count DESC, kind
LIMIT :limit;

-- name: count_kinds_at
-- The same as it was at a revision (:as_of_revision) and its time (:as_of_time).
SELECT coalesce(kind, '') AS kind, count(*) AS count FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
WHERE NOT placeholder AND name IS NOT NULL AND is_current_at(expires_at, :as_of_time)
GROUP BY 1
ORDER BY count DESC, kind
LIMIT :limit;

-- name: find_children_of
-- Live nodes whose parent is one of these, looked up by the parent; at most :limit (null: all).
SELECT child.id FROM unnest(:node_ids::uuid[]) AS parent (id)
CROSS JOIN LATERAL (
    SELECT id FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(parent_id, parent.id) AND removed_revision IS NULL
    ORDER BY parent_id OFFSET 0
) AS child
LIMIT :limit;

-- name: backdate_node
-- Move the creation time of a node back to that of the oldest node that was merged into it.
UPDATE nodes SET created_at = least(created_at, :created_at) WHERE tenant_id = :tenant_id AND id = :node_id;

-- name: mark_compared
-- Record on entities, and on their newest versions, up to when they were compared with all others: bookkeeping that changes
-- nothing of the entities, so that it makes no version.
WITH marked AS (
    UPDATE nodes SET last_dedup_at = :compared_at
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (:node_ids::uuid[]) AND removed_revision IS NULL
)
UPDATE node_versions v SET last_dedup_at = :compared_at
WHERE v.tenant_id = :tenant_id AND v.node_id = ANY (:node_ids) AND v.version = (
    SELECT n.version FROM nodes n
    WHERE n.tenant_id = :tenant_id AND n.id = v.node_id AND n.graph_id = :graph_id AND is_live(n.removed_revision)
);
