-- name: find_snapshot
-- The newest state of a graph. An export reads this state, whatever is written meanwhile. Expired facts are not
-- counted, because the export reports how many facts it leaves out.
SELECT graph_id, revision, statement_timestamp() AS at, entities, facts - (
    SELECT count(*) FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp()
        AND removed_revision IS NULL
        AND name IS NULL
) AS facts, placeholders, relations
FROM graph_heads
WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: written_since
-- Those of these nodes whose newest version :subject has written since revision :since_revision, and whether it created them
-- since.
SELECT n.id, n.added_revision >= :since_revision AND n.created_by = :subject AS created
FROM unnest(:node_ids::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT id, version_id, added_revision, created_by FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, wanted.id) ORDER BY id LIMIT 1
) AS n
CROSS JOIN LATERAL (
    SELECT added_revision, created_by FROM node_versions
    WHERE tenant_id = :tenant_id AND same_key(id, n.version_id) ORDER BY id LIMIT 1
) AS v
WHERE v.added_revision >= :since_revision AND v.created_by = :subject;

-- fragment: said_of
-- The observations of a node v that were live at revision :as_of_revision and time :as_of_time, where nodes have names.
SELECT * FROM observations
WHERE :named AND tenant_id = :tenant_id AND same_key(node_id, state.node_id) AND added_revision <= :as_of_revision
    AND is_live_at(removed_revision, :as_of_revision) AND is_current_at(expires_at, :as_of_time)
ORDER BY node_id OFFSET 0

-- name: nodes_as_of
-- plan: once from here
-- The next lineages after :after, oldest first, each as it was at revision :as_of_revision and time :as_of_time. `shown`:
-- whether it was a node at that revision, has a name if :named and none if not, and matches :kind (kind), :tags (any of
-- these), :since and :until (its last change); active, unless :hidden. At most :limit lineages, and of those the first
-- whose texts, metadata (as stored, compressed) and observations with their attributes come to :max_bytes bytes, but at
-- least one. different_from: names of entities before it, from which it is different, as somebody says now. Nodes that were live then are still live, or were removed since: the removed ones are few, and the log names
-- them. No partial index serves is_live (ADR 32): while a table has no statistics, the planner would sort the whole graph
-- for each page by one.
WITH live AS (
    SELECT id FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND is_live(removed_revision)
        AND added_revision <= :as_of_revision AND id > :after
        AND ((name IS NOT NULL) = :named OR version > 1)
    ORDER BY id
    LIMIT :limit
), removed AS (
    SELECT node.id
    FROM (
        SELECT DISTINCT changed.id FROM changes, unnest(ids) AS changed (id)
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :as_of_revision AND changed.id > :after
    ) AS touched
    CROSS JOIN LATERAL (
        SELECT id, graph_id, added_revision, removed_revision FROM nodes
        WHERE tenant_id = :tenant_id AND same_key(id, touched.id) ORDER BY id LIMIT 1
    ) AS node
    WHERE node.graph_id = :graph_id AND node.removed_revision > :as_of_revision AND node.added_revision <= :as_of_revision
    ORDER BY node.id
    LIMIT :limit
), page AS (
    SELECT id FROM live UNION ALL SELECT id FROM removed
    ORDER BY id
    LIMIT :limit
), found AS (
    SELECT page.id AS lineage, version.*
    FROM page
    LEFT JOIN LATERAL (
        SELECT version.* FROM (
            SELECT * FROM node_versions
            WHERE tenant_id = :tenant_id AND node_id = page.id AND added_revision <= :as_of_revision
            ORDER BY version DESC
            LIMIT 1
        ) AS version
        WHERE NOT version.deleted AND (version.name IS NOT NULL) = :named
            AND coalesce(version.name, version.content) IS NOT NULL AND is_current_at(version.expires_at, :as_of_time)
            AND (:hidden::boolean OR version.status = 'active') AND (:kind::text IS NULL OR version.kind = :kind)
            AND (cardinality(:tags::text[]) = 0 OR EXISTS (
                SELECT FROM unnest(version.tags) AS own (tag)
                JOIN unnest(:tags::text[]) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag)))
            AND NOT (version.placeholder AND (:kind IS NOT NULL OR cardinality(:tags) > 0
                OR :since::timestamptz IS NOT NULL OR :until::timestamptz IS NOT NULL))
    ) AS version ON true
), sized AS (
    SELECT state.*, row_number() OVER upwards AS position, sum(size.bytes + coalesce(octet_length(state.content), 0)
        + coalesce(octet_length(state.summary), 0) + coalesce(pg_column_size(state.metadata), 0)) OVER upwards AS bytes
    FROM found state
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(observation.content) + 64 + pg_column_size(observation.metadata)), 0) AS bytes
        FROM (
            -- include: said_of
        ) AS observation
    ) AS size
    WINDOW upwards AS (ORDER BY state.lineage)
)
SELECT state.lineage AS id, state.node_id IS NOT NULL AND coalesce(:since <= changed.at, true)
    AND coalesce(:until >= changed.at, true) AS shown,
    state.name, state.kind, state.content, state.summary, state.tags, state.importance, state.metadata, state.status,
    state.source, state.thread, state.said_at, state.said_offset, state.freshness_at, state.ttl_days, state.expires_at,
    state.placeholder, coalesce(state.began_at, node.created_at) AS created_at, changed.at AS updated_at,
    parent.name AS parent, alias.aliases, facts.contents, facts.threads, facts.said_ats, facts.said_offsets,
    facts.expiries, facts.attributes, state.reason,
    ARRAY(
        SELECT other.name
        FROM (
            SELECT node_id FROM dismissals
            WHERE tenant_id = :tenant_id AND same_key(other_id, state.node_id) ORDER BY other_id OFFSET 0
        ) AS dismissal
        CROSS JOIN LATERAL version_at(:tenant_id, dismissal.node_id, :as_of_revision) AS other
        WHERE other.name IS NOT NULL AND NOT other.placeholder AND is_current_at(other.expires_at, :as_of_time)
            AND (:hidden OR other.status = 'active')
        ORDER BY other.name
    ) AS different_from
FROM sized state
CROSS JOIN LATERAL (SELECT created_at, updated_at FROM nodes WHERE tenant_id = :tenant_id
    AND id = state.lineage LIMIT 1) AS node
LEFT JOIN LATERAL (
    SELECT CASE WHEN node.updated_at <= (SELECT at FROM changes WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND revision = :as_of_revision)
        THEN node.updated_at ELSE changed_at(:tenant_id, :graph_id, state.node_id, state.created_at,
            :as_of_revision) END AS at
) AS changed ON state.node_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT name, deleted, placeholder, expires_at FROM node_versions
    WHERE tenant_id = :tenant_id AND node_id = state.parent_id AND added_revision <= :as_of_revision
    ORDER BY version DESC
    LIMIT 1
) AS parent ON NOT parent.deleted AND NOT parent.placeholder AND is_current_at(parent.expires_at, :as_of_time)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(alias.name ORDER BY alias.name), '{}') AS aliases FROM aliases alias
    WHERE alias.tenant_id = :tenant_id AND alias.node_id = state.node_id AND alias.name IS DISTINCT FROM state.name
        AND alias.added_revision <= :as_of_revision AND is_live_at(alias.removed_revision, :as_of_revision)
) AS alias
CROSS JOIN LATERAL (
    SELECT array_agg(fact.content ORDER BY fact.first, fact.id) AS contents,
        array_agg(fact.thread ORDER BY fact.first, fact.id) AS threads,
        array_agg(fact.said_at ORDER BY fact.first, fact.id) AS said_ats,
        array_agg(fact.said_offset ORDER BY fact.first, fact.id) AS said_offsets,
        array_agg(fact.expires_at ORDER BY fact.first, fact.id) AS expiries,
        array_agg(CASE WHEN fact.attributes <> '{}' THEN fact.attributes END ORDER BY fact.first, fact.id) AS attributes
    FROM (
        SELECT id, content, thread, said_at, said_offset, expires_at, coalesce(first_revision, added_revision) AS first,
            jsonb_strip_nulls(jsonb_build_object('kind', kind, 'tags', nullif(tags, '{}'), 'importance', importance,
                'source', source, 'status', nullif(status, 'active'), 'reason', reason))
                || CASE WHEN metadata = '{}' THEN '{}' ELSE jsonb_build_object('metadata', metadata) END AS attributes
        FROM (
            -- include: said_of
        ) AS said
    ) AS fact
) AS facts
WHERE state.position = 1 OR state.bytes <= :max_bytes
ORDER BY state.lineage;

-- name: relations_as_of
-- plan: with values
-- The next relations of the graph after :after, oldest first, that were live at revision :as_of_revision; at most
-- :limit. `shown` is false if an end did not exist, had expired at the time :as_of_time, had no name although :named is
-- set, was outdated or archived although :hidden is not set, or does not match :kind (kind), :tags (any of these), :since and :until (its last change). Relations into other
-- graphs are left out. A relation whose properties changed since is returned with its old properties and its present
-- id. Of these relations, the first whose metadata and facts at their ends come to :max_bytes bytes, but at least one.
WITH live AS (
    SELECT id, from_node, to_node, type, metadata, ordinal, created_at, updated_at FROM relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND to_graph = :graph_id AND removed_revision IS NULL
        AND added_revision <= :as_of_revision
        AND id > :after
    ORDER BY id
    LIMIT :limit
), touched AS MATERIALIZED (
    SELECT DISTINCT id FROM changes, unnest(ids) AS id
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :as_of_revision AND id > :after
), removed AS (
    SELECT coalesce(version_of, id) AS id, from_node, to_node, type, metadata, ordinal, created_at, updated_at
    FROM relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND to_graph = :graph_id
        AND removed_revision > :as_of_revision AND added_revision <= :as_of_revision
        AND (id = ANY (ARRAY(SELECT id FROM touched)) OR version_of = ANY (ARRAY(SELECT id FROM touched)))
    ORDER BY 1
    LIMIT :limit
), page AS (
    SELECT * FROM live UNION ALL SELECT * FROM removed
    ORDER BY id
    LIMIT :limit
), ends AS (
    SELECT version.*
    FROM (SELECT from_node AS id FROM page UNION SELECT to_node FROM page) AS edge_end
    CROSS JOIN LATERAL (
        SELECT * FROM node_versions
        WHERE tenant_id = :tenant_id AND node_id = edge_end.id AND added_revision <= :as_of_revision
        ORDER BY version DESC
        LIMIT 1
    ) AS version
    WHERE NOT version.deleted AND coalesce(version.name, version.content) IS NOT NULL
        AND NOT (:named AND version.name IS NULL) AND is_current_at(version.expires_at, :as_of_time)
        AND (:hidden::boolean OR version.status = 'active') AND (:kind::text IS NULL OR version.kind = :kind)
        AND (cardinality(:tags::text[]) = 0 OR EXISTS (
            SELECT FROM unnest(version.tags) AS own (tag)
            JOIN unnest(:tags::text[]) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag)))
        AND NOT (version.placeholder AND (:kind IS NOT NULL OR cardinality(:tags) > 0 OR :since::timestamptz IS NOT NULL
            OR :until::timestamptz IS NOT NULL))
        AND (:since IS NULL AND :until IS NULL
            OR changed_at(:tenant_id, :graph_id, version.node_id, version.created_at,
                :as_of_revision) BETWEEN coalesce(:since,
            '-infinity') AND coalesce(:until, 'infinity'))
), ties AS (
    SELECT page.*, source.node_id IS NOT NULL AND target.node_id IS NOT NULL AS shown, source.name AS source,
        CASE WHEN source.name IS NULL THEN source.content END AS source_text, source.thread AS source_thread,
            source.status AS source_status,
        target.name AS target, CASE WHEN target.name IS NULL THEN target.content END AS target_text,
        target.thread AS target_thread, target.status AS target_status
    FROM page
    LEFT JOIN ends source ON source.node_id = page.from_node
    LEFT JOIN ends target ON target.node_id = page.to_node
), sized AS (
    SELECT *, row_number() OVER upwards AS position, sum(CASE WHEN shown THEN pg_column_size(metadata)
        + coalesce(octet_length(source_text), 0) + coalesce(octet_length(target_text), 0)
        ELSE 0 END) OVER upwards AS bytes
    FROM ties
    WINDOW upwards AS (ORDER BY id)
)
SELECT id, shown, from_node, to_node, type, metadata, ordinal, created_at, coalesce(updated_at, created_at) AS updated_at,
    source, source_text, source_thread, source_status, target, target_text, target_thread, target_status
FROM sized
WHERE position = 1 OR bytes <= :max_bytes
ORDER BY id;

-- name: find_facts
-- plan: once from here
-- The oldest live fact with each of these texts, threads and statuses; looked up as in nodes.insert_facts.
SELECT i.position, n.id
FROM unnest(:texts::text[], :threads::text[], :statuses::text[]) WITH ORDINALITY AS i (content, thread, status, position)
CROSS JOIN LATERAL (
    SELECT f.id FROM search_nodes f
    WHERE f.tenant_id = :tenant_id AND f.graph_id = :graph_id AND f.removed_revision IS NULL AND f.name IS NULL
        AND same_key(hashtextextended(f.content, 0), hashtextextended(i.content, 0))
        AND f.content = i.content AND f.thread IS NOT DISTINCT FROM i.thread AND f.status = i.status
        AND is_current_at(f.expires_at, clock_timestamp())
    ORDER BY hashtextextended(f.content, 0), f.id
    LIMIT 1
) AS n
ORDER BY i.position;

-- name: added_since
-- Live entities and facts that changed after the time :since; at most :limit.
SELECT name, content, thread, status FROM nodes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND is_live(removed_revision) AND updated_at > :since
    AND NOT placeholder AND coalesce(name, content) IS NOT NULL AND is_current_at(expires_at, clock_timestamp())
LIMIT :limit;
