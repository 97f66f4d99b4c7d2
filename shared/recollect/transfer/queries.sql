-- name: find_snapshot
-- The newest state of a graph, to be read from now on whatever is written meanwhile.
SELECT graph_id, revision, statement_timestamp() AS at, facts
FROM graph_heads
WHERE tenant_id = $1 AND graph_id = $2;

-- name: entities_as_of
-- The next lineages after $5, oldest first, each with the entity that it was at revision $3 and time $4, or without a
-- name where it was none: at most $6, and of those the first whose observations come to $7 bytes, but always one. What
-- was live then is live still, or was removed since: those are few, and the log names them.
WITH live AS (
    SELECT id FROM nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND added_revision <= $3
        AND name IS NOT NULL AND NOT placeholder AND id > $5
    ORDER BY id
    LIMIT $6
), removed AS (
    SELECT id FROM nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision > $3 AND added_revision <= $3
        AND name IS NOT NULL AND NOT placeholder AND id = ANY (ARRAY(
            SELECT touched FROM changes, unnest(ids) AS touched
            WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3 AND touched > $5
        ))
    ORDER BY id
    LIMIT $6
), page AS (
    SELECT id FROM live UNION ALL SELECT id FROM removed
    ORDER BY id
    LIMIT $6
), sized AS (
    SELECT p.id, row_number() OVER upwards AS place, sum(o.bytes) OVER upwards AS bytes
    FROM page p
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(content)), 0) AS bytes FROM observations
        WHERE tenant_id = $1 AND node_id = p.id AND added_revision <= $3
            AND (removed_revision IS NULL OR removed_revision > $3) AND (expires_at IS NULL OR expires_at > $4)
    ) AS o
    WINDOW upwards AS (ORDER BY p.id)
)
SELECT s.id, v.name, v.kind, o.observations
FROM sized s
LEFT JOIN LATERAL (
    SELECT name, kind, placeholder, expires_at FROM node_versions
    WHERE tenant_id = $1 AND node_id = s.id AND added_revision <= $3
    ORDER BY version DESC
    LIMIT 1
) AS v ON NOT v.placeholder AND (v.expires_at IS NULL OR v.expires_at > $4)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(content ORDER BY added_revision, id), '{}') AS observations FROM observations
    WHERE tenant_id = $1 AND node_id = s.id AND added_revision <= $3
        AND (removed_revision IS NULL OR removed_revision > $3) AND (expires_at IS NULL OR expires_at > $4)
) AS o
WHERE s.place = 1 OR s.bytes <= $7
ORDER BY s.id;

-- name: relations_as_of
-- The next relations within the graph after $5, oldest first, that were live at revision $3: at most $6. An end is
-- without a name where it had none or had expired at the time $4. Relations that lead into another graph are left out.
WITH live AS (
    SELECT id, from_node, to_node, type FROM relations
    WHERE tenant_id = $1 AND graph_id = $2 AND to_graph = $2 AND removed_revision IS NULL AND added_revision <= $3
        AND id > $5
    ORDER BY id
    LIMIT $6
), removed AS (
    SELECT id, from_node, to_node, type FROM relations
    WHERE tenant_id = $1 AND graph_id = $2 AND to_graph = $2 AND removed_revision > $3 AND added_revision <= $3
        AND id = ANY (ARRAY(
            SELECT touched FROM changes, unnest(ids) AS touched
            WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3 AND touched > $5
        ))
    ORDER BY id
    LIMIT $6
), page AS (
    SELECT * FROM live UNION ALL SELECT * FROM removed
    ORDER BY id
    LIMIT $6
)
SELECT p.id, f.name AS source, t.name AS target, p.type
FROM page p
LEFT JOIN LATERAL (
    SELECT name, expires_at FROM node_versions
    WHERE tenant_id = $1 AND node_id = p.from_node AND added_revision <= $3
    ORDER BY version DESC
    LIMIT 1
) AS f ON f.expires_at IS NULL OR f.expires_at > $4
LEFT JOIN LATERAL (
    SELECT name, expires_at FROM node_versions
    WHERE tenant_id = $1 AND node_id = p.to_node AND added_revision <= $3
    ORDER BY version DESC
    LIMIT 1
) AS t ON t.expires_at IS NULL OR t.expires_at > $4
ORDER BY p.id;
