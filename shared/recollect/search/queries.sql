-- name: search_substring
-- Entities whose name, kind or observations hold a substring: name before kind before observation, then oldest first.
-- One match more than asked for tells that there are more.
WITH matches AS (
    SELECT id, CASE WHEN name ILIKE $4 THEN 4 WHEN name ILIKE $3 THEN 3 ELSE 2 END AS rank
    FROM search_nodes
    WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL
        AND (name ILIKE $3 OR kind ILIKE $3)
    UNION ALL
    SELECT node_id, 1
    FROM search_observations
    WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND content ILIKE $3
        AND (expires_at IS NULL OR expires_at > statement_timestamp())
), ranked AS (
    SELECT id, max(rank) AS rank FROM matches GROUP BY id
)
SELECT n.id
FROM ranked r
JOIN search_nodes n ON n.tenant_id = $1 AND n.id = r.id
WHERE n.removed_revision IS NULL AND NOT n.placeholder AND n.name IS NOT NULL
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    AND ($5::text IS NULL OR n.kind = $5)
    AND (cardinality($6::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest($6::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
    AND ($7::double precision IS NULL OR n.importance >= $7)
    AND ($8::double precision IS NULL OR n.importance <= $8)
ORDER BY r.rank DESC, n.created_at, n.id
OFFSET $9
LIMIT $10;

-- name: search_substring_at
-- The same as search_substring in a graph as it was at revision $11 and its time $12, without indexes.
WITH living AS (
    SELECT * FROM nodes_at($1, $2, $11)
    WHERE name IS NOT NULL AND NOT placeholder AND (expires_at IS NULL OR expires_at > $12)
), matches AS (
    SELECT node_id AS id, CASE WHEN name ILIKE $4 THEN 4 WHEN name ILIKE $3 THEN 3 ELSE 2 END AS rank
    FROM living WHERE name ILIKE $3 OR kind ILIKE $3
    UNION ALL
    SELECT node_id, 1 FROM observations_at($1, $2, $11)
    WHERE content ILIKE $3 AND (expires_at IS NULL OR expires_at > $12)
), ranked AS (
    SELECT id, max(rank) AS rank FROM matches GROUP BY id
)
SELECT n.node_id AS id
FROM ranked r
JOIN living n ON n.node_id = r.id
JOIN nodes h ON h.tenant_id = $1 AND h.id = n.node_id
WHERE ($5::text IS NULL OR n.kind = $5)
    AND (cardinality($6::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest($6::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
    AND ($7::double precision IS NULL OR n.importance >= $7)
    AND ($8::double precision IS NULL OR n.importance <= $8)
ORDER BY r.rank DESC, coalesce(n.began_at, h.created_at), n.node_id
OFFSET $9
LIMIT $10;

-- name: recall
-- Memories by their words and their meaning: the best passages of each kind, scored together, the best passage of each
-- memory. $4 is null while the embedder is away. An entity's name answers only where it has nothing else to say.
-- Few nodes are outdated, expiring or of limited freshness: those are looked up and excluded (nodes_unusual), so that the
-- many others need no join. A blank text has the zero vector, whose cosine is not a number, which to PostgreSQL is above every number.
WITH question AS (
    SELECT replace(plainto_tsquery('english', $3)::text, ' & ', ' | ')::tsquery AS words
), eligible AS NOT MATERIALIZED (
    SELECT p.id, p.tsv, p.embedding, p.embedding_model
    FROM search_passages p
    WHERE p.tenant_id = $1 AND p.graph_id = $2 AND p.removed_revision IS NULL
        AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp())
        AND ($13::timestamptz IS NULL OR p.said_at >= $13)
        AND ($14::timestamptz IS NULL OR p.said_at <= $14)
        AND p.node_id NOT IN (
            SELECT n.id FROM search_nodes n
            WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL
                AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
                AND ((n.status = 'archived' AND $19::text IS DISTINCT FROM 'archived') OR (n.status = 'outdated' AND NOT $7)
                    OR n.expires_at <= statement_timestamp() OR ($8 AND n.freshness_at <= statement_timestamp())))
        AND ((cardinality($9::text[]) = 0 AND cardinality($10::text[]) = 0 AND cardinality($11::text[]) = 0
            AND $12::double precision IS NULL AND $19 IS NULL AND $20::boolean IS NULL) OR EXISTS (
                SELECT 1 FROM search_nodes n
                WHERE n.tenant_id = $1 AND n.id = p.node_id
                    AND (cardinality($9::text[]) = 0 OR n.kind = ANY ($9))
                    AND (cardinality($11::text[]) = 0 OR n.name = ANY ($11))
                    AND ($12::double precision IS NULL OR n.importance >= $12)
                    AND ($19 IS NULL OR n.status = $19) AND ($20 IS NULL OR (n.name IS NOT NULL) = $20)
                    AND (cardinality($10::text[]) = 0 OR EXISTS (
                        SELECT 1 FROM unnest(n.tags) AS t (tag)
                        JOIN unnest($10::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))))
), worded AS (
    SELECT e.id FROM eligible e CROSS JOIN question q
    WHERE e.tsv @@ q.words
    ORDER BY ts_rank(e.tsv, q.words) DESC, e.id
    LIMIT $6
), meant AS (
    SELECT e.id FROM eligible e
    WHERE e.embedding_model = $5 AND $4::halfvec IS NOT NULL
    ORDER BY e.embedding <=> $4::halfvec
    LIMIT $6
), candidates AS (
    SELECT p.id, p.memory_id, p.node_id, p.source, p.text, p.said_at, ts_rank(p.tsv, q.words)::double precision AS words,
        coalesce(CASE WHEN p.embedding_model = $5 THEN nullif(1 - (p.embedding <=> $4::halfvec), 'NaN') END, 0) AS meaning
    FROM search_passages p CROSS JOIN question q
    WHERE p.tenant_id = $1 AND p.id IN (SELECT id FROM worded UNION SELECT id FROM meant)
), evident AS (
    SELECT * FROM candidates c
    WHERE (c.words > 0 OR c.meaning >= $15)
        AND (c.source <> 'name' OR NOT EXISTS (
            SELECT 1 FROM passages o
            WHERE o.tenant_id = $1 AND o.node_id = c.node_id AND o.source <> 'name' AND o.removed_revision IS NULL
                AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp())))
), scored AS (
    SELECT e.*,
        $16 * coalesce((words - min(words) OVER ()) / nullif(max(words) OVER () - min(words) OVER (), 0), 1)
        + $17 * coalesce((meaning - min(meaning) OVER ()) / nullif(max(meaning) OVER () - min(meaning) OVER (), 0), 1)
        AS score
    FROM evident e
), best AS (
    SELECT DISTINCT ON (memory_id) * FROM scored ORDER BY memory_id, score DESC, id
)
SELECT b.memory_id, b.node_id, n.name, b.text, b.said_at AS at, b.score / ($16 + $17) AS score, b.words, b.meaning
FROM best b
JOIN nodes n ON n.tenant_id = $1 AND n.id = b.node_id
ORDER BY score DESC, b.memory_id
LIMIT $18;

-- name: find_close
-- For each new text, older memories that share a word with it and mean nearly the same: of its node, where it has one.
SELECT i.place, c.memory_id, c.text, c.score
FROM unnest($3::integer[], $4::text[], $5::halfvec[], $6::uuid[]) AS i (place, text, embedding, node_id)
CROSS JOIN LATERAL (
    SELECT p.memory_id, p.text, 1 - (p.embedding <=> i.embedding) AS score
    FROM search_passages p
    WHERE p.tenant_id = $1 AND p.graph_id = $2 AND p.removed_revision IS NULL AND p.source <> 'name'
        AND p.embedding_model = $7 AND (i.node_id IS NULL OR p.node_id = i.node_id) AND p.text <> i.text
        AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp())
        AND p.tsv @@ replace(plainto_tsquery('english', i.text)::text, ' & ', ' | ')::tsquery
    ORDER BY p.embedding <=> i.embedding
    LIMIT $8
) AS c
WHERE c.score >= $9
ORDER BY i.place, c.score DESC;

-- name: find_mentioned
-- Live entities that have one of these names, or had it before a merge: exactly, or in small letters ($4) where the name
-- has $5 characters or more. At most $6.
-- The names come as arrays, and what a node must be calls for no partial index where aliases are joined to nodes: else a
-- planner without statistics compares each with every entity.
SELECT id FROM search_nodes
WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND name IS NOT NULL
    AND (name = ANY ($3::text[]) OR (lower(name) = ANY ($4::text[]) AND length(name) >= $5))
    AND NOT placeholder AND status <> 'archived' AND (expires_at IS NULL OR expires_at > statement_timestamp())
UNION
SELECT n.id
FROM aliases a
JOIN nodes n ON n.tenant_id = $1 AND n.id = a.node_id
WHERE a.tenant_id = $1 AND a.graph_id = $2 AND a.removed_revision IS NULL
    AND (a.name = ANY ($3::text[]) OR (lower(a.name) = ANY ($4::text[]) AND length(a.name) >= $5))
    AND coalesce(n.removed_revision, 0) = 0 AND NOT n.placeholder AND n.status <> 'archived'
    AND coalesce(n.expires_at > statement_timestamp(), true)
ORDER BY id
LIMIT $6;

-- name: find_similar
-- Active facts that mean nearly the same as a node, nearest first, at most $5: by the nearest of the passages that one
-- model embedded. $4: the least cosine.
WITH own AS (
    SELECT embedding, embedding_model FROM search_passages
    WHERE tenant_id = $1 AND graph_id = $2 AND node_id = $3 AND removed_revision IS NULL AND embedding IS NOT NULL
), near AS (
    SELECT p.node_id, max(nullif(1 - (p.embedding <=> o.embedding), 'NaN')) AS score
    FROM own o
    JOIN search_passages p ON p.tenant_id = $1 AND p.graph_id = $2 AND p.embedding_model = o.embedding_model
    WHERE p.removed_revision IS NULL AND p.source = 'fact' AND p.node_id <> $3
    GROUP BY p.node_id
)
SELECT n.id, near.score
FROM near
JOIN nodes n ON n.tenant_id = $1 AND n.id = near.node_id
WHERE near.score >= $4 AND n.name IS NULL AND n.removed_revision IS NULL AND n.status = 'active'
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
ORDER BY near.score DESC, n.id
LIMIT $5;

-- name: vectors_ready
-- Whether the database can compare vectors.
SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector');
