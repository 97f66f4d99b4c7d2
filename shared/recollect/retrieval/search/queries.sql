-- Every search takes $3 and $4: the revision and the time of the past state that is read, or nulls for what is now. And $5
-- to $8, its filters: a kind, tags (any of them, whatever their case), least and most importance (an array of both), and
-- whether archived entities are found, too; nulls and no tags filter nothing.
--
-- Matches are gathered by index first; then each is looked up by its id, in a LATERAL that OFFSET 0 keeps apart. A plain
-- join would let a planner without statistics, as after a large import, compare each match with every entity.

-- fragment: fits
-- Whether an entity e passes the filters.
($5::text IS NULL OR e.kind = $5)
    AND (cardinality($6::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(e.tags) AS t (tag) JOIN unnest($6::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
    AND coalesce(e.importance >= ($7::double precision[])[1], ($7::double precision[])[1] IS NULL)
    AND coalesce(e.importance <= ($7::double precision[])[2], ($7::double precision[])[2] IS NULL)
    AND ($8::boolean OR e.status <> 'archived');

-- name: search_substring
-- Entities whose name, kind or observations hold a substring: name before kind before observation. Of names, the shorter
-- comes first, since the substring is more of it (BM25's normalisation by length, of one term); else the oldest. One match
-- more than asked for tells that there are more.
WITH matches AS (
    SELECT id, CASE WHEN name ILIKE $10 THEN 4 WHEN name ILIKE $9 THEN 3 ELSE 2 END AS rank
    FROM entities_of($1, $2, $3, $4)
    WHERE name ILIKE $9 OR kind ILIKE $9
    UNION ALL
    SELECT node_id, 1 FROM statements_of($1, $2, $3, $4) WHERE content ILIKE $9
), ranked AS MATERIALIZED (
    SELECT id, max(rank) AS rank FROM matches GROUP BY id
)
SELECT r.id
FROM ranked r
CROSS JOIN LATERAL (
    SELECT e.name, e.created_at FROM entity_of($1, $2, r.id, $3, $4) e
    WHERE -- include: fits
    OFFSET 0
) AS e
ORDER BY r.rank DESC, CASE WHEN r.rank = 3 THEN length(e.name) END, e.created_at, r.id
OFFSET $11
LIMIT $12;

-- name: search_ranked
-- Entities that hold a word of the query, by TF-IDF, best first. $9: the words as patterns of ILIKE; $10: as regular
-- expressions for small letters; $11: what a word is; $12: how many entities there are to be found without filters, null
-- where that is not known. Words are counted in small letters over name, kind and observations.
WITH candidates AS (
    SELECT id FROM entities_of($1, $2, $3, $4) WHERE name ILIKE ANY ($9::text[]) OR kind ILIKE ANY ($9::text[])
    UNION
    SELECT node_id FROM statements_of($1, $2, $3, $4) WHERE content ILIKE ANY ($9::text[])
), documents AS MATERIALIZED (
    SELECT c.id, e.created_at, lower(concat_ws(' ', e.name, e.kind, s.text)) AS text
    FROM candidates c
    CROSS JOIN LATERAL (
        SELECT e.name, e.kind, e.created_at FROM entity_of($1, $2, c.id, $3, $4) e
        WHERE -- include: fits
        OFFSET 0
    ) AS e
    CROSS JOIN LATERAL (
        SELECT string_agg(content, ' ') AS text FROM statements_about($1, $2, c.id, $3, $4)
    ) AS s
), counted AS MATERIALIZED (
    SELECT d.id, d.created_at, w.place, regexp_count(d.text, lower(w.pattern)) AS times, regexp_count(d.text, $11) AS words
    FROM documents d
    CROSS JOIN unnest($10::text[]) WITH ORDINALITY AS w (pattern, place)
), corpus AS MATERIALIZED (
    SELECT CASE WHEN $12::bigint IS NULL THEN (
        SELECT count(*) FROM entities_of($1, $2, $3, $4) e
        WHERE -- include: fits
    ) ELSE $12 - CASE WHEN $8 THEN 0 ELSE (
        SELECT count(*) FROM search_nodes
        WHERE tenant_id = $1 AND graph_id = $2 AND status = 'archived' AND removed_revision IS NULL AND name IS NOT NULL
            AND NOT placeholder
    ) END END AS documents
), rarity AS MATERIALIZED (
    SELECT c.place, ln(max(o.documents)::double precision / count(*)) AS idf
    FROM counted c CROSS JOIN corpus o
    WHERE c.times > 0
    GROUP BY c.place
)
SELECT c.id, sum(c.times::double precision / c.words * r.idf ORDER BY c.place) AS score
FROM counted c
JOIN rarity r ON r.place = c.place
WHERE c.times > 0
GROUP BY c.id, c.created_at
ORDER BY score DESC, c.created_at, c.id
OFFSET $13
LIMIT $14;

-- name: search_boolean
-- Entities that a boolean query holds of, oldest first. Its terms: $9 fields (null: any), $10 patterns. Which of them must
-- and must not match, as the bits of numbers: $11 and $12, one pair for each way in which the query holds. $13: whether one of
-- those asks for no term, so that every entity must be looked at.
WITH terms AS (
    SELECT place - 1 AS place, field, pattern FROM unnest($9::text[], $10::text[]) WITH ORDINALITY AS t (field, pattern, place)
), hits AS (
    SELECT 1::bigint << t.place::integer AS bit, n.id
    FROM terms t CROSS JOIN LATERAL (SELECT id FROM entities_of($1, $2, $3, $4) WHERE name ILIKE t.pattern OFFSET 0) AS n
    WHERE t.field = 'name' OR t.field IS NULL
    UNION ALL
    SELECT 1::bigint << t.place::integer, n.id
    FROM terms t CROSS JOIN LATERAL (SELECT id FROM entities_of($1, $2, $3, $4) WHERE kind ILIKE t.pattern OFFSET 0) AS n
    WHERE t.field = 'type' OR t.field IS NULL
    UNION ALL
    SELECT 1::bigint << t.place::integer, n.id
    FROM terms t CROSS JOIN LATERAL (
        SELECT id FROM entities_of($1, $2, $3, $4)
        WHERE tags <> '{}' AND joined(tags) ILIKE t.pattern
            AND EXISTS (SELECT 1 FROM unnest(tags) AS g (tag) WHERE tag ILIKE t.pattern)
        OFFSET 0
    ) AS n
    WHERE t.field = 'tag' OR t.field IS NULL
    UNION ALL
    SELECT 1::bigint << t.place::integer, s.node_id
    FROM terms t CROSS JOIN LATERAL (SELECT node_id FROM statements_of($1, $2, $3, $4) WHERE content ILIKE t.pattern OFFSET 0) AS s
    WHERE t.field = 'observation' OR t.field IS NULL
    UNION ALL
    SELECT 0, id FROM entities_of($1, $2, $3, $4) WHERE $13
), masks AS MATERIALIZED (
    SELECT id, bit_or(bit) AS mask FROM hits GROUP BY id
), held AS MATERIALIZED (
    SELECT m.id FROM masks m
    WHERE m.mask IN (
        SELECT d.mask FROM (SELECT DISTINCT mask FROM masks) AS d
        WHERE EXISTS (
            SELECT 1 FROM unnest($11::bigint[], $12::bigint[]) AS c (required, forbidden)
            WHERE d.mask & c.required = c.required AND d.mask & c.forbidden = 0))
)
SELECT h.id
FROM held h
CROSS JOIN LATERAL (
    SELECT e.created_at FROM entity_of($1, $2, h.id, $3, $4) e
    WHERE -- include: fits
    OFFSET 0
) AS e
ORDER BY e.created_at, h.id
OFFSET $14
LIMIT $15;

-- name: count_trigrams
-- A text in small letters, and how many trigrams it has.
SELECT lower($1) AS folded, cardinality(show_trgm($1)) AS trigrams;

-- name: set_similarity
-- The similarity from which % holds, for the rest of the transaction.
SELECT set_config('pg_trgm.similarity_threshold', $1, true);

-- name: fuzzy_entities
-- Entities whose name or kind may be close to a text, by id after $13: those of $10 to $11 characters that are similar to $9,
-- or where $12 is false all of that length. Both in small letters.
SELECT e.id AS key, e.id, ARRAY[lower(e.name), lower(coalesce(e.kind, ''))] AS texts
FROM entities_of($1, $2, $3, $4) e
WHERE ((length(lower(e.name)) BETWEEN $10 AND $11 AND (NOT $12 OR e.name % $9))
        OR (length(lower(e.kind)) BETWEEN $10 AND $11 AND (NOT $12 OR e.kind % $9)))
    AND e.id > $13
    AND -- include: fits
ORDER BY e.id
LIMIT $14;

-- name: fuzzy_statements
-- The same of observations.
WITH near AS MATERIALIZED (
    SELECT s.id, s.node_id, s.content
    FROM statements_of($1, $2, $3, $4) s
    WHERE length(lower(s.content)) BETWEEN $10 AND $11 AND (NOT $12 OR similarity(s.content, $9) >= $15) AND s.id > $13
)
SELECT near.id AS key, near.node_id AS id, ARRAY[lower(near.content)] AS texts
FROM near
CROSS JOIN LATERAL (
    SELECT 1 FROM entity_of($1, $2, near.node_id, $3, $4) e
    WHERE -- include: fits
    OFFSET 0
) AS e
ORDER BY near.id
LIMIT $14;

-- name: search_dates
-- Entities that were made or last changed between $9 and $10, oldest first.
SELECT e.id
FROM entities_of($1, $2, $3, $4) e
WHERE ($10::timestamptz IS NULL OR e.created_at <= $10) AND ($9::timestamptz IS NULL OR e.updated_at >= $9)
    AND ($9 IS NULL OR $10 IS NULL OR e.created_at >= $9 OR e.updated_at <= $10)
    AND -- include: fits
ORDER BY e.created_at, e.id
OFFSET $11
LIMIT $12;

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

-- name: match_labels
-- Nodes that may come back whose summary, or whose tags, hold $6 of a question's words ($3, any of them: $4) or more, as they
-- are ($9 null) or were at a revision and its time $10; best first, with the text that holds most. $5: at most.
SELECT best.id AS node_id, best.text, best.share
FROM (
    SELECT DISTINCT ON (n.id) n.id, told.text, held.share
    FROM (
        SELECT id, kind, summary, tags, status, freshness_at, expires_at FROM search_nodes
        WHERE $9::bigint IS NULL AND tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND NOT placeholder
            AND (summary IS NOT NULL OR tags <> '{}')
            AND to_tsvector('english', coalesce(summary, '') || ' ' || joined(tags)) @@ $4::text::tsquery
        UNION ALL
        SELECT node_id, kind, summary, tags, status, freshness_at, expires_at FROM nodes_at($1, $2, $9)
        WHERE $9::bigint IS NOT NULL AND NOT placeholder
            AND to_tsvector('english', coalesce(summary, '') || ' ' || joined(tags)) @@ $4::text::tsquery
    ) AS n
    CROSS JOIN LATERAL (
        SELECT n.summary AS text WHERE n.summary IS NOT NULL
        UNION ALL
        SELECT string_agg(t.tag, ', ') FROM unnest(n.tags) AS t (tag)
        WHERE to_tsvector('english', t.tag) @@ $4::text::tsquery
    ) AS told
    CROSS JOIN LATERAL (
        SELECT count(*)::double precision / cardinality($3::text[]) AS share FROM unnest($3::text[]) AS w (word)
        WHERE w.word = ANY (tsvector_to_array(to_tsvector('english', told.text)))
    ) AS held
    WHERE n.status = 'active' AND (n.expires_at IS NULL OR n.expires_at > coalesce($10, statement_timestamp()))
        AND (cardinality($7::text[]) = 0 OR n.kind = ANY ($7))
        AND (cardinality($8::text[]) = 0 OR EXISTS (
            SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest($8::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
        AND (NOT $11 OR n.freshness_at IS NULL OR n.freshness_at > coalesce($10, statement_timestamp()))
        AND held.share >= $6
    ORDER BY n.id, held.share DESC, told.text = n.summary DESC
) AS best
ORDER BY best.share DESC, best.id
LIMIT $5;
