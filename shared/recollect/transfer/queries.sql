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
WHERE :named AND tenant_id = :tenant_id AND same_key(node_id, v.node_id) AND added_revision <= :as_of_revision
    AND is_live_at(removed_revision, :as_of_revision) AND is_current_at(expires_at, :as_of_time)
ORDER BY node_id OFFSET 0

-- name: nodes_as_of
-- The next lineages after :after, oldest first, each as it was at revision :as_of_revision and time :as_of_time. `shown`:
-- whether it was a node at that revision, has a name if :named and none if not, and matches :kind (kind), :tags (any of
-- these), :since and :until (its last change); active, unless :hidden. At most :limit lineages, and of those the first
-- whose texts, metadata (as stored, compressed) and observations with their attributes come to :max_bytes bytes, but at
-- least one. Nodes that were live then are still live, or were removed since: the removed ones are few, and the log names
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
    SELECT n.id
    FROM (
        SELECT DISTINCT t.id FROM changes, unnest(ids) AS t (id)
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :as_of_revision AND t.id > :after
    ) AS touched
    CROSS JOIN LATERAL (
        SELECT id, graph_id, added_revision, removed_revision FROM nodes
        WHERE tenant_id = :tenant_id AND same_key(id, touched.id) ORDER BY id LIMIT 1
    ) AS n
    WHERE n.graph_id = :graph_id AND n.removed_revision > :as_of_revision AND n.added_revision <= :as_of_revision
    ORDER BY n.id
    LIMIT :limit
), page AS (
    SELECT id FROM live UNION ALL SELECT id FROM removed
    ORDER BY id
    LIMIT :limit
), found AS (
    SELECT p.id AS lineage, v.*
    FROM page p
    LEFT JOIN LATERAL (
        SELECT w.* FROM (
            SELECT * FROM node_versions
            WHERE tenant_id = :tenant_id AND node_id = p.id AND added_revision <= :as_of_revision
            ORDER BY version DESC
            LIMIT 1
        ) AS w
        WHERE NOT w.deleted AND (w.name IS NOT NULL) = :named AND coalesce(w.name, w.content) IS NOT NULL
            AND is_current_at(w.expires_at, :as_of_time) AND (:hidden::boolean OR w.status = 'active')
            AND (:kind::text IS NULL OR w.kind = :kind)
            AND (cardinality(:tags::text[]) = 0 OR EXISTS (
                SELECT FROM unnest(w.tags) AS t (tag) JOIN unnest(:tags::text[]) AS o (tag) ON lower(t.tag) = lower(o.tag)))
            AND NOT (w.placeholder AND (:kind IS NOT NULL OR cardinality(:tags) > 0
                OR :since::timestamptz IS NOT NULL OR :until::timestamptz IS NOT NULL))
    ) AS v ON true
), sized AS (
    SELECT v.*, row_number() OVER upwards AS position, sum(o.bytes + coalesce(octet_length(v.content), 0)
        + coalesce(octet_length(v.summary), 0) + coalesce(pg_column_size(v.metadata), 0)) OVER upwards AS bytes
    FROM found v
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(s.content) + 64 + pg_column_size(s.metadata)), 0) AS bytes
        FROM (
            -- include: said_of
        ) AS s
    ) AS o
    WINDOW upwards AS (ORDER BY v.lineage)
)
SELECT v.lineage AS id, v.node_id IS NOT NULL AND coalesce(:since <= c.at, true)
    AND coalesce(:until >= c.at, true) AS shown,
    v.name, v.kind, v.content, v.summary, v.tags, v.importance, v.metadata, v.status, v.source, v.thread, v.said_at,
    v.said_offset, v.freshness_at, v.ttl_days, v.expires_at, v.placeholder, coalesce(v.began_at, n.created_at) AS created_at,
    c.at AS updated_at, p.name AS parent, a.aliases, o.contents, o.threads, o.said_ats, o.said_offsets, o.expiries,
    o.attributes, v.reason
FROM sized v
CROSS JOIN LATERAL (SELECT created_at, updated_at FROM nodes WHERE tenant_id = :tenant_id AND id = v.lineage LIMIT 1) AS n
LEFT JOIN LATERAL (
    SELECT CASE WHEN n.updated_at <= (SELECT at FROM changes WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND revision = :as_of_revision)
        THEN n.updated_at ELSE changed_at(:tenant_id, :graph_id, v.node_id, v.created_at, :as_of_revision) END AS at
) AS c ON v.node_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT name, deleted, placeholder, expires_at FROM node_versions
    WHERE tenant_id = :tenant_id AND node_id = v.parent_id AND added_revision <= :as_of_revision
    ORDER BY version DESC
    LIMIT 1
) AS p ON NOT p.deleted AND NOT p.placeholder AND is_current_at(p.expires_at, :as_of_time)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(l.name ORDER BY l.name), '{}') AS aliases FROM aliases l
    WHERE l.tenant_id = :tenant_id AND l.node_id = v.node_id AND l.name IS DISTINCT FROM v.name
        AND l.added_revision <= :as_of_revision AND is_live_at(l.removed_revision, :as_of_revision)
) AS a
CROSS JOIN LATERAL (
    SELECT array_agg(s.content ORDER BY s.first, s.id) AS contents, array_agg(s.thread ORDER BY s.first, s.id) AS threads,
        array_agg(s.said_at ORDER BY s.first, s.id) AS said_ats, array_agg(s.said_offset ORDER BY s.first, s.id) AS said_offsets,
        array_agg(s.expires_at ORDER BY s.first, s.id) AS expiries,
        array_agg(CASE WHEN s.attributes <> '{}' THEN s.attributes END ORDER BY s.first, s.id) AS attributes
    FROM (
        SELECT id, content, thread, said_at, said_offset, expires_at, coalesce(first_revision, added_revision) AS first,
            jsonb_strip_nulls(jsonb_build_object('kind', kind, 'tags', nullif(tags, '{}'), 'importance', importance,
                'source', source, 'status', nullif(status, 'active'), 'reason', reason))
                || CASE WHEN metadata = '{}' THEN '{}' ELSE jsonb_build_object('metadata', metadata) END AS attributes
        FROM (
            -- include: said_of
        ) AS said
    ) AS s
) AS o
WHERE v.position = 1 OR v.bytes <= :max_bytes
ORDER BY v.lineage;

-- name: relations_as_of
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
    SELECT v.*
    FROM (SELECT from_node AS id FROM page UNION SELECT to_node FROM page) AS e
    CROSS JOIN LATERAL (
        SELECT * FROM node_versions
        WHERE tenant_id = :tenant_id AND node_id = e.id AND added_revision <= :as_of_revision
        ORDER BY version DESC
        LIMIT 1
    ) AS v
    WHERE NOT v.deleted AND coalesce(v.name, v.content) IS NOT NULL AND NOT (:named AND v.name IS NULL)
        AND is_current_at(v.expires_at, :as_of_time) AND (:hidden::boolean OR v.status = 'active')
        AND (:kind::text IS NULL OR v.kind = :kind)
        AND (cardinality(:tags::text[]) = 0 OR EXISTS (
            SELECT FROM unnest(v.tags) AS t (tag) JOIN unnest(:tags::text[]) AS o (tag) ON lower(t.tag) = lower(o.tag)))
        AND NOT (v.placeholder AND (:kind IS NOT NULL OR cardinality(:tags) > 0 OR :since::timestamptz IS NOT NULL
            OR :until::timestamptz IS NOT NULL))
        AND (:since IS NULL AND :until IS NULL
            OR changed_at(:tenant_id, :graph_id, v.node_id, v.created_at, :as_of_revision) BETWEEN coalesce(:since,
            '-infinity') AND coalesce(:until, 'infinity'))
), ties AS (
    SELECT p.*, f.node_id IS NOT NULL AND t.node_id IS NOT NULL AS shown, f.name AS source,
        CASE WHEN f.name IS NULL THEN f.content END AS source_text, f.thread AS source_thread, f.status AS source_status,
        t.name AS target, CASE WHEN t.name IS NULL THEN t.content END AS target_text, t.thread AS target_thread,
        t.status AS target_status
    FROM page p
    LEFT JOIN ends f ON f.node_id = p.from_node
    LEFT JOIN ends t ON t.node_id = p.to_node
), sized AS (
    SELECT *, row_number() OVER upwards AS position, sum(CASE WHEN shown THEN pg_column_size(metadata)
        + coalesce(octet_length(source_text), 0) + coalesce(octet_length(target_text), 0) ELSE 0 END) OVER upwards AS bytes
    FROM ties
    WINDOW upwards AS (ORDER BY id)
)
SELECT id, shown, from_node, to_node, type, metadata, ordinal, created_at, coalesce(updated_at, created_at) AS updated_at,
    source, source_text, source_thread, source_status, target, target_text, target_thread, target_status
FROM sized
WHERE position = 1 OR bytes <= :max_bytes
ORDER BY id;

-- name: find_facts
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
