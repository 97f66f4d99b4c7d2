-- Every search takes :as_of_revision and :as_of_time of a past state, or nulls for the present, and these filters:
-- :kind, :tags (any of them, in any case), :importance (an array of the least and the greatest), and :archived (whether
-- archived entities are found, too). Nulls and no tags filter nothing.
--
-- Matches are gathered by index first; then each is looked up by its id (ADR 32). A plain join would let a planner without
-- statistics, as after a large import, compare each match with every entity.

-- fragment: fits
-- Whether an entity (node) passes the filters.
(:kind::text IS NULL OR node.kind = :kind)
    AND (cardinality(:tags::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(node.tags) AS own (tag)
        JOIN unnest(:tags::text[]) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag)))
    AND coalesce(node.importance >= (:importance::double precision[])[1], (:importance::double precision[])[1] IS NULL)
    AND coalesce(node.importance <= (:importance::double precision[])[2], (:importance::double precision[])[2] IS NULL)
    AND (:archived::boolean OR node.status <> 'archived');

-- fragment: living
-- Whether an entity (node) of the search view is live now.
node.tenant_id = :tenant_id AND node.graph_id = :graph_id AND node.removed_revision IS NULL AND NOT node.placeholder
    AND node.name IS NOT NULL AND is_current(node.expires_at)

-- fragment: saying
-- Whether an observation of the search view is live now, and contains the substring.
observation.tenant_id = :tenant_id AND observation.graph_id = :graph_id AND observation.removed_revision IS NULL
AND observation.status = 'active'
    AND is_current(observation.expires_at) AND holds(observation.content, :patterns::text[], :plain_patterns::text[])

-- fragment: called
-- Whether the name or the kind of an entity (node) contains the substring.
(holds(node.name, :patterns::text[], :plain_patterns::text[])
    OR coalesce(holds(node.kind, :patterns::text[], :plain_patterns::text[]), false))

-- fragment: asked
-- The number of matches to read for a page, with one more, which shows that others follow.
:offset::bigint + :limit::bigint

-- fragment: named
-- Entities whose name or kind contains a substring, as many as may be on a page: names before kinds. Shorter names come
-- first, since the substring is a larger part of them (BM25's normalisation by length, for one term); then the oldest.
SELECT ranked.id, ranked.rank, CASE WHEN ranked.rank = 3 THEN ranked.length END AS length, ranked.created_at
FROM (
    SELECT node.id, length(node.name) AS length, node.created_at,
        CASE WHEN normalize(node.name, NFC) ILIKE :name_pattern THEN 4
            WHEN normalize(node.name, NFC) ILIKE (:patterns::text[])[1] THEN 3 ELSE 2 END AS rank
    FROM search_nodes node
    WHERE (holds(node.name, :patterns::text[], :plain_patterns::text[])
        OR holds(node.kind, :patterns::text[], :plain_patterns::text[])) AND -- include: living
        AND -- include: fits
) AS ranked
ORDER BY ranked.rank DESC, CASE WHEN ranked.rank = 3 THEN ranked.length END, ranked.created_at, ranked.id
LIMIT -- include: asked

-- fragment: by_observation
-- The entity match.node_id, one of whose observations contains the substring, if neither its name nor its kind does.
CROSS JOIN LATERAL (
    SELECT node.created_at FROM search_nodes node
    WHERE node.tenant_id = :tenant_id AND node.id = match.node_id AND node.graph_id IS NOT DISTINCT FROM :graph_id
        AND is_live(node.removed_revision) AND NOT node.placeholder AND node.name IS NOT NULL
        AND coalesce(node.expires_at > statement_timestamp(), true) AND NOT -- include: called
        AND -- include: fits
    OFFSET 0
) AS node

-- name: search_substring
-- Entities whose name, kind or observations contain a substring: first by name and kind, then by observations, the
-- oldest first. One match more than the limit shows that others follow. Observations are read if names and kinds leave
-- room. If more than :gathered of them contain a substring, it is common (is_common): then the ids are incomplete, and
-- the caller runs search_common_substring.
WITH named AS MATERIALIZED (
    -- include: named
), saying AS MATERIALIZED (
    SELECT observation.node_id FROM search_observations observation
    WHERE -- include: saying
        AND (SELECT count(*) FROM named) < -- include: asked
    LIMIT :gathered::bigint + 1
)
SELECT ARRAY(
    SELECT f.id
    FROM (
        SELECT id, rank, length, created_at FROM named
        UNION ALL
        SELECT match.node_id, 1, NULL, node.created_at
        FROM (SELECT DISTINCT node_id FROM saying WHERE (SELECT count(*) FROM saying) <= :gathered) AS match
        -- include: by_observation
    ) AS f
    ORDER BY f.rank DESC, f.length, f.created_at, f.id
    OFFSET :offset
    LIMIT :limit
) AS ids, (SELECT count(*) FROM saying) > :gathered AS is_common;

-- name: search_common_substring
-- search_substring for a common substring. Probably the :max_scanned oldest entities contain it often enough to fill a page;
-- only if they do not is each match read.
WITH named AS MATERIALIZED (
    -- include: named
), oldest AS MATERIALIZED (
    SELECT node.id, node.created_at
    FROM (
        SELECT node.id, node.created_at, node.name, node.kind, node.tags, node.importance, node.status
        FROM search_nodes node
        WHERE -- include: living
        ORDER BY node.created_at, node.id
        LIMIT :max_scanned
    ) AS node
    WHERE EXISTS (
        SELECT 1 FROM search_observations observation
        WHERE observation.tenant_id = :tenant_id AND observation.node_id = node.id
            AND is_live(observation.removed_revision) AND observation.status = 'active'
            AND coalesce(observation.expires_at > statement_timestamp(), true)
            AND holds(observation.content, :patterns::text[], :plain_patterns::text[])
    ) AND NOT -- include: called
        AND -- include: fits
    ORDER BY node.created_at, node.id
    LIMIT -- include: asked
), found AS MATERIALIZED (
    SELECT (SELECT count(*) FROM named) + (SELECT count(*) FROM oldest) >= -- include: asked
    AS enough
)
SELECT listed.id
FROM (
    SELECT id, rank, length, created_at FROM named
    UNION ALL
    SELECT id, 1, NULL, created_at FROM oldest WHERE (SELECT enough FROM found)
    UNION ALL
    SELECT match.node_id, 1, NULL, node.created_at
    FROM (
        SELECT DISTINCT observation.node_id FROM search_observations observation
        WHERE NOT (SELECT enough FROM found) AND -- include: saying
    ) AS match
    -- include: by_observation
) AS listed
ORDER BY listed.rank DESC, listed.length, listed.created_at, listed.id
OFFSET :offset
LIMIT :limit;

-- name: search_substring_at
-- search_substring for the past. Each match is read, however common.
WITH matches AS (
    SELECT id, CASE WHEN normalize(name, NFC) ILIKE :name_pattern THEN 4
            WHEN normalize(name, NFC) ILIKE (:patterns::text[])[1] THEN 3 ELSE 2 END AS rank
    FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
    WHERE holds(name, :patterns::text[], :plain_patterns::text[])
        OR holds(kind, :patterns::text[], :plain_patterns::text[])
    UNION ALL
    SELECT node_id, 1 FROM statements_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
    WHERE holds(content, :patterns::text[], :plain_patterns::text[])
), ranked AS MATERIALIZED (
    SELECT id, max(rank) AS rank FROM matches GROUP BY id
)
SELECT ARRAY(
    SELECT r.id
    FROM ranked r
    CROSS JOIN LATERAL (
        SELECT node.name, node.created_at FROM entity_of(:tenant_id, :graph_id, r.id, :as_of_revision, :as_of_time) node
        WHERE -- include: fits
        OFFSET 0
    ) AS e
    ORDER BY r.rank DESC, CASE WHEN r.rank = 3 THEN length(e.name) END, e.created_at, r.id
    OFFSET :offset
    LIMIT :limit
) AS ids, false AS is_common;

-- name: search_ranked
-- Entities that contain a word of the query, by TF-IDF, best first. :patterns: the words, in all their forms, as patterns of
-- ILIKE;
-- :regexes: as regular expressions for lower case; :word: the regular expression of any word, :apostrophe: that of a letter
-- which is an apostrophe where it is between others; :entities: the number of live entities, archived ones included, if
-- nothing is filtered, null if it is not known. Expired ones are not in it, so only archived ones that have not expired are
-- subtracted. Words are counted in lower case and normal form NFC over name, kind and observations.
WITH candidates AS (
    SELECT id FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
    WHERE holds(name, :patterns::text[], :patterns) OR holds(kind, :patterns, :patterns)
    UNION
    SELECT node_id FROM statements_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
    WHERE holds(content, :patterns, :patterns)
), documents AS MATERIALIZED (
    SELECT c.id, e.created_at, normalize(
            lower(regexp_replace(concat_ws(' ', e.name, e.kind, s.text), :apostrophe, '''', 'g')), NFC) AS text
    FROM candidates c
    CROSS JOIN LATERAL (
        SELECT node.name, node.kind, node.created_at
        FROM entity_of(:tenant_id, :graph_id, c.id, :as_of_revision, :as_of_time) node
        WHERE -- include: fits
        OFFSET 0
    ) AS e
    CROSS JOIN LATERAL (
        SELECT string_agg(content, ' ') AS text FROM statements_about(:tenant_id, :graph_id, c.id, :as_of_revision,
            :as_of_time)
    ) AS s
), counted AS MATERIALIZED (
    SELECT d.id, d.created_at, w.position, regexp_count(d.text, lower(w.pattern)) AS times, regexp_count(d.text,
        :word) AS words
    FROM documents d
    CROSS JOIN unnest(:regexes::text[]) WITH ORDINALITY AS w (pattern, position)
), corpus AS MATERIALIZED (
    SELECT CASE WHEN :entities::bigint IS NULL THEN (
        SELECT count(*) FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time) node
        WHERE -- include: fits
    ) ELSE :entities - CASE WHEN :archived THEN 0 ELSE (
        SELECT count(*) FROM search_nodes
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND status = 'archived' AND removed_revision IS NULL
            AND name IS NOT NULL AND NOT placeholder AND coalesce(expires_at > statement_timestamp(), true)
    ) END END AS documents
), rarity AS MATERIALIZED (
    SELECT c.position, ln(greatest(max(o.documents), count(*))::double precision / count(*)) AS idf
    FROM counted c CROSS JOIN corpus o
    WHERE c.times > 0
    GROUP BY c.position
)
SELECT c.id, sum(c.times::double precision / c.words * r.idf ORDER BY c.position) AS score
FROM counted c
JOIN rarity r ON r.position = c.position
WHERE c.times > 0
GROUP BY c.id, c.created_at
ORDER BY score DESC, c.created_at, c.id
OFFSET :offset
LIMIT :limit;

-- fragment: written
-- The names and texts of up to :sampled of the passages p with a word w: first those in which it is not as the query has it
-- (pattern).
CROSS JOIN LATERAL (
    SELECT concat_ws(' ', n.name, p.text) AS text FROM (SELECT name FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, p.node_id) ORDER BY id LIMIT 1) AS n
) AS t
    ORDER BY normalize(lower(t.text), NFC) ~ w.pattern
    LIMIT :sampled

-- name: sample_words
-- Names and texts that have the words :words (each a tsquery) in any form: of each word :sampled at most, among :examined
-- passages, first those that do not have it as it is written (:regexes).
SELECT t.text
FROM unnest(:words::text[], :regexes::text[]) AS w (word, pattern)
CROSS JOIN LATERAL (
    SELECT t.text
    FROM (
        SELECT node_id, text FROM search_passages
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND tsv @@ w.word::tsquery
        LIMIT :examined
    ) AS p
    -- include: written
) AS t;

-- name: sample_words_at
-- The same for the past.
SELECT t.text
FROM unnest(:words::text[], :regexes::text[]) AS w (word, pattern)
CROSS JOIN LATERAL (
    SELECT t.text
    FROM (
        SELECT node_id, text FROM search_passages
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND added_revision <= :as_of_revision
            AND is_live_at(removed_revision, :as_of_revision) AND tsv @@ w.word::tsquery
        LIMIT :examined
    ) AS p
    -- include: written
) AS t;

-- name: search_boolean
-- Entities that match a boolean query, oldest first. Its terms, once in each of their written forms: their places :positions,
-- fields :fields (null: any) and patterns :patterns, with :plain_patterns (as in holds). :required and :forbidden: for each
-- conjunction of the query, the terms that must and must not match, as the bits of a number. :is_universal: whether a
-- conjunction requires no term, so that every entity must be read.
WITH terms AS (
    SELECT position, field, pattern, plain
    FROM unnest(:positions::integer[], :fields::text[], :patterns::text[], :plain_patterns::text[])
        AS term (position, field, pattern, plain)
), hits AS (
    SELECT 1::bigint << term.position AS bit, node.id
    FROM terms term
    CROSS JOIN LATERAL (
        SELECT id FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
        WHERE holds(name, term.pattern, term.plain)
        OFFSET 0
    ) AS node
    WHERE term.field = 'name' OR term.field IS NULL
    UNION ALL
    SELECT 1::bigint << term.position, node.id
    FROM terms term
    CROSS JOIN LATERAL (
        SELECT id FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
        WHERE holds(kind, term.pattern, term.plain)
        OFFSET 0
    ) AS node
    WHERE term.field = 'type' OR term.field IS NULL
    UNION ALL
    SELECT 1::bigint << term.position, node.id
    FROM terms term
    CROSS JOIN LATERAL (
        SELECT id FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
        WHERE tags <> '{}' AND (joined(tags) ILIKE term.pattern
                OR is_decomposed(joined(tags)) AND plain_text(joined(tags)) ILIKE term.plain)
            AND EXISTS (SELECT 1 FROM unnest(tags) AS own (tag) WHERE holds(tag, term.pattern, term.plain))
        OFFSET 0
    ) AS node
    WHERE term.field = 'tag' OR term.field IS NULL
    UNION ALL
    SELECT 1::bigint << term.position, observation.node_id
    FROM terms term
    CROSS JOIN LATERAL (
        SELECT node_id FROM statements_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time)
        WHERE holds(content, term.pattern, term.plain)
        OFFSET 0
    ) AS observation
    WHERE term.field = 'observation' OR term.field IS NULL
    UNION ALL
    SELECT 0, id FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time) WHERE :is_universal
), masks AS MATERIALIZED (
    SELECT id, bit_or(bit) AS mask FROM hits GROUP BY id
), held AS MATERIALIZED (
    SELECT masks.id FROM masks
    WHERE masks.mask IN (
        SELECT distinct_mask.mask FROM (SELECT DISTINCT mask FROM masks) AS distinct_mask
        WHERE EXISTS (
            SELECT 1 FROM unnest(:required::bigint[], :forbidden::bigint[]) AS conjunction (required, forbidden)
            WHERE distinct_mask.mask & conjunction.required = conjunction.required
                AND distinct_mask.mask & conjunction.forbidden = 0))
)
SELECT held.id
FROM held
CROSS JOIN LATERAL (
    SELECT node.created_at FROM entity_of(:tenant_id, :graph_id, held.id, :as_of_revision, :as_of_time) node
    WHERE -- include: fits
    OFFSET 0
) AS entity
ORDER BY entity.created_at, held.id
OFFSET :offset
LIMIT :limit;

-- name: count_trigrams
-- Texts in lower case, in order, and the number of trigrams of each.
SELECT lower(t.text) AS folded, cardinality(show_trgm(t.text)) AS trigrams
FROM unnest(:texts::text[]) WITH ORDINALITY AS t (text, position)
ORDER BY t.position;

-- name: set_similarity
-- Set the least similarity for which % is true, for the rest of the transaction.
SELECT set_config('pg_trgm.similarity_threshold', :similarity, true);

-- name: fuzzy_entities
-- Entities whose name or kind may be near to a text: those of :min_length to :max_length characters that are similar to any
-- of :texts (the text in each normal form, and without accents) or, if :by_trigrams is false, all of that length. Names and
-- kinds with accents are also compared without these, with :folded. All in lower case, in any order.
SELECT node.id, ARRAY[lower(node.name), lower(coalesce(node.kind, ''))] AS texts
FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time) node
WHERE -- include: fits
    AND ((length(lower(node.name)) BETWEEN :min_length AND :max_length
            AND (NOT :by_trigrams OR node.name % ANY (:texts::text[])))
        OR (length(lower(node.kind)) BETWEEN :min_length AND :max_length AND (NOT :by_trigrams OR node.kind % ANY (:texts)))
        OR ((octet_length(node.name) > length(node.name) OR octet_length(node.kind) > length(node.kind))
            AND nullif(folded_name(node.name), lower(node.name)) % :folded::text)
        OR ((octet_length(node.name) > length(node.name) OR octet_length(node.kind) > length(node.kind))
            AND nullif(folded_name(node.kind), lower(node.kind)) % :folded));

-- name: fuzzy_statements
-- fuzzy_entities for observations, of which those with accents are compared with the first 512 characters of :folded.
WITH near AS MATERIALIZED (
    SELECT s.node_id, s.content
    FROM statements_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time) s
    WHERE length(lower(s.content)) BETWEEN :min_length AND :max_length AND (NOT :by_trigrams
        OR EXISTS (SELECT FROM unnest(:texts::text[]) AS t (text) WHERE similarity(s.content, t.text) >= :min_similarity)
        OR (s.content ~ '[\u00aa-\u036f\u0386-\u03ce\u0400-\u045f\u1e00-\u1fff]'
            AND similarity(folded_name(s.content), :folded::text) >= :min_similarity))
)
SELECT near.node_id AS id, ARRAY[lower(near.content)] AS texts
FROM near
CROSS JOIN LATERAL (
    SELECT 1 FROM entity_of(:tenant_id, :graph_id, near.node_id, :as_of_revision, :as_of_time) node
    WHERE -- include: fits
    OFFSET 0
) AS e;

-- name: fuzzy_words
-- Entities whose name and observation, or name, have every word of a fuzzy query in one of its forms (:words), and these
-- texts: so are names found that differ from the query in accents or width. Of :examined matches.
SELECT m.node_id AS id, array_remove(ARRAY[e.name, o.content], NULL) AS texts
FROM (
    SELECT node_id, memory_id, source FROM search_passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND tsv @@ :words::tsquery
    LIMIT :examined
) AS m
CROSS JOIN LATERAL (
    SELECT node.name FROM entity_of(:tenant_id, :graph_id, m.node_id, :as_of_revision, :as_of_time) node
    WHERE -- include: fits
    OFFSET 0
) AS e
LEFT JOIN LATERAL (
    SELECT content FROM search_observations
    WHERE tenant_id = :tenant_id AND id = m.memory_id AND graph_id = :graph_id AND is_live(removed_revision)
        AND coalesce(expires_at > statement_timestamp(), true) AND m.source = 'observation'
    LIMIT 1
) AS o ON true;

-- name: fuzzy_words_at
-- The same for the past.
SELECT m.node_id AS id, array_remove(ARRAY[e.name, o.content], NULL) AS texts
FROM (
    SELECT node_id, memory_id, source FROM search_passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND added_revision <= :as_of_revision
        AND is_live_at(removed_revision, :as_of_revision) AND tsv @@ :words::tsquery
    LIMIT :examined
) AS m
CROSS JOIN LATERAL (
    SELECT node.name FROM entity_of(:tenant_id, :graph_id, m.node_id, :as_of_revision, :as_of_time) node
    WHERE -- include: fits
    OFFSET 0
) AS e
LEFT JOIN LATERAL (
    SELECT content FROM observations
    WHERE tenant_id = :tenant_id AND id = m.memory_id AND graph_id = :graph_id AND added_revision <= :as_of_revision
        AND coalesce(removed_revision > :as_of_revision, true) AND coalesce(expires_at > :as_of_time, true)
        AND m.source = 'observation'
    ORDER BY added_revision DESC LIMIT 1
) AS o ON true;

-- name: search_dates
-- Entities that were created or last changed between :since and :until, oldest first.
SELECT node.id
FROM entities_of(:tenant_id, :graph_id, :as_of_revision, :as_of_time) node
WHERE (:until::timestamptz IS NULL OR node.created_at <= :until)
    AND (:since::timestamptz IS NULL OR node.updated_at >= :since)
    AND (:since IS NULL OR :until IS NULL OR node.created_at >= :since OR node.updated_at <= :until)
    AND -- include: fits
ORDER BY node.created_at, node.id
OFFSET :offset
LIMIT :limit;

-- fragment: completed
-- The conditions for live names that a completion may tell.
tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND NOT placeholder AND status <> 'archived'
            AND is_current(expires_at)

-- name: complete_names
-- Names of live entities that begin with :prefix, in any case, with or without accents, in alphabetical order; at most
-- :limit. The first are found by index: names with accents and the like by what they are without them, others as they
-- are. A collation may sort other names between them (marks and spaces count for little there): at most :examined names
-- of each kind are read.
SELECT name FROM (
    (SELECT name FROM search_nodes
    WHERE name IS NOT NULL AND lower(name) >= lower(:prefix::text) AND -- include: completed
    ORDER BY lower(name)
    LIMIT :examined)
    UNION
    (SELECT name FROM search_nodes
    WHERE name IS NOT NULL AND lower(name) >= folded_name(:prefix) AND -- include: completed
    ORDER BY lower(name)
    LIMIT :examined)
    UNION
    (SELECT name FROM search_nodes
    WHERE nullif(folded_name(name), lower(name)) >= folded_name(:prefix) AND -- include: completed
    ORDER BY nullif(folded_name(name), lower(name))
    LIMIT :examined)
) AS near
WHERE starts_with(lower(name), lower(:prefix)) OR starts_with(folded_name(name), folded_name(:prefix))
ORDER BY lower(name), name
LIMIT :limit;

-- name: find_mentioned
-- Live entities with one of these names, or with such an alias: exactly, or in lower case (:lowered_names) if the name
-- has :min_length characters or more. At most :limit, oldest first.
SELECT entities_named(:tenant_id, :graph_id, :names, :lowered_names, :min_length, :limit);

-- fragment: labelled
-- The columns of nodes with labels, but for the words of these.
kind, summary, tags, status, freshness_at, expires_at

-- name: match_labels
-- plan: with values
-- Active nodes whose summary, or whose tags, contain at least the share :min_share of a question's words (:words, each a
-- tsquery; :any_word matches any of them), now (:as_of_revision null) or at a revision and its time :as_of_time; best first,
-- and of equal ones the summary (is_tags false); at most :limit. :optional words do not count where no match has them.
-- Labels that were not analysed yet, and versions from before that analysis, have the words that PostgreSQL finds.
WITH asked AS MATERIALIZED (
    SELECT word::tsquery AS word, optional FROM unnest(:words::text[], :optional::boolean[]) AS w (word, optional)
), matches AS MATERIALIZED (
    SELECT id, labels AS words, -- include: labelled
    FROM search_nodes
    WHERE :as_of_revision::bigint IS NULL AND tenant_id = :tenant_id AND graph_id = :graph_id
        AND removed_revision IS NULL AND NOT placeholder AND labels IS NOT NULL AND labels @@ :any_word::text::tsquery
    UNION ALL
    SELECT id, english_labels(summary, tags), -- include: labelled
    FROM search_nodes
    WHERE :as_of_revision::bigint IS NULL AND tenant_id = :tenant_id AND graph_id = :graph_id
        AND labels_version < 2 AND removed_revision IS NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}')
        AND label_words(coalesce(summary, '') || ' ' || joined(tags)) @@ :any_word::text::tsquery
    UNION ALL
    SELECT node_id, coalesce(labels, english_labels(summary, tags)), -- include: labelled
    FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
    WHERE :as_of_revision::bigint IS NOT NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}')
        AND coalesce(labels, english_labels(summary, tags)) @@ :any_word::text::tsquery
), counted AS MATERIALIZED (
    SELECT count(*) AS words FROM asked a
    WHERE NOT a.optional OR EXISTS (SELECT FROM matches m WHERE m.words @@ a.word)
)
SELECT best.id AS node_id, best.summary, best.tags, best.is_tags, best.share
FROM (
    SELECT DISTINCT ON (n.id) n.id, n.summary, n.tags, part.is_tags, held.share
    FROM matches n
    CROSS JOIN LATERAL (
        VALUES (false, ts_filter(n.words, '{c,d}')), (true, ts_filter(n.words, '{b}'))
    ) AS part (is_tags, words)
    CROSS JOIN LATERAL (
        SELECT count(*)::double precision / (SELECT words FROM counted) AS share FROM asked a WHERE part.words @@ a.word
    ) AS held
    WHERE n.status = 'active' AND is_current_at(n.expires_at, coalesce(:as_of_time, statement_timestamp()))
        AND (cardinality(:kinds::text[]) = 0
            OR lower(n.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds) AS w (kind))))
        AND (cardinality(:tags::text[]) = 0 OR EXISTS (
            SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest(:tags::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
        AND (NOT :fresh_only OR n.freshness_at IS NULL OR n.freshness_at > coalesce(:as_of_time, statement_timestamp()))
        AND held.share >= :min_share
    ORDER BY n.id, held.share DESC, part.is_tags
) AS best
ORDER BY best.share DESC, best.id
LIMIT :limit;
