-- name: find_snapshot
-- The newest state of a graph, to be read from now on whatever is written meanwhile. Of facts those that have expired are
-- not counted: how many an export leaves out is told.
SELECT graph_id, revision, statement_timestamp() AS at, entities, facts - (
    SELECT count(*) FROM nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND expires_at <= statement_timestamp() AND removed_revision IS NULL
        AND name IS NULL
) AS facts, placeholders, relations
FROM graph_heads
WHERE tenant_id = $1 AND graph_id = $2;

-- name: nodes_as_of
-- The next lineages after $5, oldest first, each as it was at revision $3 and time $4 where it was then a node with a name
-- ($8) or without, and $9 (kind), $10 (any of these tags), $11 and $12 (when it last changed) let it pass: at most $6,
-- and of those the first whose texts, metadata (as it is stored, compressed) and observations (each with what stands
-- beside it) come to $7 bytes, but always one. A lineage that does not pass has `shown` false.
-- What was live then is live still, or was removed since: those are few, and the log names them. That a node lives is
-- said so that it calls for no partial index: while a table has no statistics, each page would sort the whole graph.
WITH live AS (
    SELECT id FROM nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND coalesce(removed_revision, 0) = 0 AND added_revision <= $3 AND id > $5
        AND ((name IS NOT NULL) = $8 OR version > 1)
    ORDER BY id
    LIMIT $6
), removed AS (
    SELECT id FROM nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision > $3 AND added_revision <= $3 AND id = ANY (ARRAY(
        SELECT touched FROM changes, unnest(ids) AS touched
        WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3 AND touched > $5
    ))
    ORDER BY id
    LIMIT $6
), page AS (
    SELECT id FROM live UNION ALL SELECT id FROM removed
    ORDER BY id
    LIMIT $6
), found AS (
    SELECT p.id AS lineage, v.*
    FROM page p
    LEFT JOIN LATERAL (
        SELECT w.* FROM (
            SELECT * FROM node_versions
            WHERE tenant_id = $1 AND node_id = p.id AND added_revision <= $3
            ORDER BY version DESC
            LIMIT 1
        ) AS w
        WHERE NOT w.deleted AND (w.name IS NOT NULL) = $8 AND coalesce(w.name, w.content) IS NOT NULL
            AND (w.expires_at IS NULL OR w.expires_at > $4) AND ($9::text IS NULL OR w.kind = $9)
            AND (cardinality($10::text[]) = 0 OR EXISTS (
                SELECT FROM unnest(w.tags) AS t (tag) JOIN unnest($10::text[]) AS o (tag) ON lower(t.tag) = lower(o.tag)))
            AND NOT (w.placeholder AND ($9 IS NOT NULL OR cardinality($10) > 0
                OR $11::timestamptz IS NOT NULL OR $12::timestamptz IS NOT NULL))
    ) AS v ON true
), sized AS (
    SELECT v.*, row_number() OVER upwards AS place, sum(o.bytes + coalesce(octet_length(v.content), 0)
        + coalesce(octet_length(v.summary), 0) + coalesce(pg_column_size(v.metadata), 0)) OVER upwards AS bytes
    FROM found v
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(content) + 64 + pg_column_size(metadata)), 0) AS bytes FROM observations
        WHERE $8 AND tenant_id = $1 AND node_id = v.node_id AND added_revision <= $3
            AND (removed_revision IS NULL OR removed_revision > $3) AND (expires_at IS NULL OR expires_at > $4)
    ) AS o
    WINDOW upwards AS (ORDER BY v.lineage)
)
SELECT v.lineage AS id, v.node_id IS NOT NULL AND coalesce($11 <= c.at, true) AND coalesce($12 >= c.at, true) AS shown,
    v.name, v.kind, v.content, v.summary, v.tags, v.importance, v.metadata, v.status, v.source, v.thread, v.said_at,
    v.freshness_at, v.ttl_days, v.expires_at, v.placeholder, coalesce(v.began_at, n.created_at) AS created_at,
    c.at AS updated_at, p.name AS parent, a.aliases, o.contents, o.threads, o.said_ats, o.expiries,
    o.attributes, v.reason
FROM sized v
CROSS JOIN LATERAL (SELECT created_at, updated_at FROM nodes WHERE tenant_id = $1 AND id = v.lineage LIMIT 1) AS n
LEFT JOIN LATERAL (
    SELECT CASE WHEN n.updated_at <= (SELECT at FROM changes WHERE tenant_id = $1 AND graph_id = $2 AND revision = $3)
        THEN n.updated_at ELSE changed_at($1, $2, v.node_id, v.created_at, $3) END AS at
) AS c ON v.node_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT name, deleted, placeholder, expires_at FROM node_versions
    WHERE tenant_id = $1 AND node_id = v.parent_id AND added_revision <= $3
    ORDER BY version DESC
    LIMIT 1
) AS p ON NOT p.deleted AND NOT p.placeholder AND (p.expires_at IS NULL OR p.expires_at > $4)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(l.name ORDER BY l.name), '{}') AS aliases FROM aliases l
    WHERE l.tenant_id = $1 AND l.node_id = v.node_id AND l.name IS DISTINCT FROM v.name AND l.added_revision <= $3
        AND (l.removed_revision IS NULL OR l.removed_revision > $3)
) AS a
CROSS JOIN LATERAL (
    SELECT array_agg(s.content ORDER BY s.first, s.id) AS contents, array_agg(s.thread ORDER BY s.first, s.id) AS threads,
        array_agg(s.said_at ORDER BY s.first, s.id) AS said_ats, array_agg(s.expires_at ORDER BY s.first, s.id) AS expiries,
        array_agg(CASE WHEN s.attributes <> '{}' THEN s.attributes END ORDER BY s.first, s.id) AS attributes
    FROM (
        SELECT id, content, thread, said_at, expires_at, coalesce(first_revision, added_revision) AS first,
            jsonb_strip_nulls(jsonb_build_object('kind', kind, 'tags', nullif(tags, '{}'), 'importance', importance,
                'source', source, 'status', nullif(status, 'active'), 'reason', reason))
                || CASE WHEN metadata = '{}' THEN '{}' ELSE jsonb_build_object('metadata', metadata) END AS attributes
        FROM observations
        WHERE $8 AND tenant_id = $1 AND node_id = v.node_id AND added_revision <= $3
            AND (removed_revision IS NULL OR removed_revision > $3) AND (expires_at IS NULL OR expires_at > $4)
    ) AS s
) AS o
WHERE v.place = 1 OR v.bytes <= $7
ORDER BY v.lineage;

-- name: relations_as_of
-- The next relations within the graph after $5, oldest first, that were live at revision $3: at most $6. One has `shown`
-- false where an end was not there, had expired at the time $4, had no name and is to have one ($7), or does not pass $8
-- (kind), $9 (any of these tags), $10 and $11 (when it last changed). Relations that lead into another graph are left out.
-- One whose properties were put since is told as it was then, by the id that it has now.
-- Of those the first whose metadata and facts at their ends come to $12 bytes, but always one.
WITH live AS (
    SELECT id, from_node, to_node, type, metadata, ordinal, created_at, updated_at FROM relations
    WHERE tenant_id = $1 AND graph_id = $2 AND to_graph = $2 AND removed_revision IS NULL AND added_revision <= $3
        AND id > $5
    ORDER BY id
    LIMIT $6
), touched AS MATERIALIZED (
    SELECT DISTINCT id FROM changes, unnest(ids) AS id
    WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3 AND id > $5
), removed AS (
    SELECT coalesce(version_of, id) AS id, from_node, to_node, type, metadata, ordinal, created_at, updated_at
    FROM relations
    WHERE tenant_id = $1 AND graph_id = $2 AND to_graph = $2 AND removed_revision > $3 AND added_revision <= $3
        AND (id = ANY (ARRAY(SELECT id FROM touched)) OR version_of = ANY (ARRAY(SELECT id FROM touched)))
    ORDER BY 1
    LIMIT $6
), page AS (
    SELECT * FROM live UNION ALL SELECT * FROM removed
    ORDER BY id
    LIMIT $6
), ends AS (
    SELECT v.*
    FROM (SELECT from_node AS id FROM page UNION SELECT to_node FROM page) AS e
    CROSS JOIN LATERAL (
        SELECT * FROM node_versions
        WHERE tenant_id = $1 AND node_id = e.id AND added_revision <= $3
        ORDER BY version DESC
        LIMIT 1
    ) AS v
    WHERE NOT v.deleted AND coalesce(v.name, v.content) IS NOT NULL AND NOT ($7 AND v.name IS NULL)
        AND (v.expires_at IS NULL OR v.expires_at > $4) AND ($8::text IS NULL OR v.kind = $8)
        AND (cardinality($9::text[]) = 0 OR EXISTS (
            SELECT FROM unnest(v.tags) AS t (tag) JOIN unnest($9::text[]) AS o (tag) ON lower(t.tag) = lower(o.tag)))
        AND NOT (v.placeholder AND ($8 IS NOT NULL OR cardinality($9) > 0 OR $10::timestamptz IS NOT NULL
            OR $11::timestamptz IS NOT NULL))
        AND ($10 IS NULL AND $11 IS NULL
            OR changed_at($1, $2, v.node_id, v.created_at, $3) BETWEEN coalesce($10, '-infinity') AND coalesce($11, 'infinity'))
), ties AS (
    SELECT p.*, f.node_id IS NOT NULL AND t.node_id IS NOT NULL AS shown, f.name AS source,
        CASE WHEN f.name IS NULL THEN f.content END AS source_text, f.thread AS source_thread, f.status AS source_status,
        t.name AS target, CASE WHEN t.name IS NULL THEN t.content END AS target_text, t.thread AS target_thread,
        t.status AS target_status
    FROM page p
    LEFT JOIN ends f ON f.node_id = p.from_node
    LEFT JOIN ends t ON t.node_id = p.to_node
), sized AS (
    SELECT *, row_number() OVER upwards AS place, sum(CASE WHEN shown THEN pg_column_size(metadata)
        + coalesce(octet_length(source_text), 0) + coalesce(octet_length(target_text), 0) ELSE 0 END) OVER upwards AS bytes
    FROM ties
    WINDOW upwards AS (ORDER BY id)
)
SELECT id, shown, from_node, to_node, type, metadata, ordinal, created_at, coalesce(updated_at, created_at) AS updated_at,
    source, source_text, source_thread, source_status, target, target_text, target_thread, target_status
FROM sized
WHERE place = 1 OR bytes <= $12
ORDER BY id;

-- name: find_facts
-- The oldest live fact that says each of these texts, in this thread, with this status.
SELECT DISTINCT ON (i.place) i.place, n.id
FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS i (content, thread, status, place)
JOIN nodes n ON n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND n.name IS NULL
    AND hashtextextended(n.content, 0) = hashtextextended(i.content, 0) AND n.content = i.content
    AND n.thread IS NOT DISTINCT FROM i.thread AND n.status = i.status
    AND (n.expires_at IS NULL OR n.expires_at > clock_timestamp())
ORDER BY i.place, n.id;

-- name: added_since
-- Live entities and facts that changed after the time $3: at most $4.
SELECT name, content, thread, status FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND coalesce(removed_revision, 0) = 0 AND updated_at > $3
    AND NOT placeholder AND coalesce(name, content) IS NOT NULL
    AND (expires_at IS NULL OR expires_at > clock_timestamp())
LIMIT $4;
