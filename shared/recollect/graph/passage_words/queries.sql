-- name: count_words
-- How many passages of a graph have each of these lexemes, about; those that no live passage has are left out. Of lexemes
-- that were not counted, up to :max_looked_at passages are looked at (0: they are left out).
SELECT count_words(:tenant_id, :graph_id, :lexemes::text[], :max_looked_at) AS counts;

-- name: tenants_with_other_words
-- Tenants with passages of former analyses of words; runs without a tenant.
SELECT tenant_id FROM tenants_with_other_words();

-- name: list_other_words
-- The oldest passages of the tenant that were analysed before :words_version, at most :limit, with what they are found by
-- beside their texts: the name and the first aliases of their entity as they are now, and the labels of their memories, of live
-- ones and with the first passage of each.
SELECT passage.id, passage.graph_id, passage.text, passage.said_at, passage.said_offset,
    passage.removed_revision IS NULL AS is_live,
    CASE WHEN passage.source = 'name' THEN node.aliases WHEN node.name IS NOT NULL
        THEN concat_ws(' ', node.name, node.aliases) END AS about,
    coalesce(CASE WHEN passage.place > 0 OR passage.removed_revision IS NOT NULL THEN NULL
        WHEN passage.source = 'observation' THEN (
            SELECT memory_labels(kind, tags, source, metadata) FROM observations
            WHERE tenant_id = :tenant_id AND id = passage.memory_id AND graph_id = passage.graph_id
                AND is_live(removed_revision)
            ORDER BY added_revision DESC LIMIT 1
        )
        WHEN passage.source = 'fact' AND passage.version_id IS NULL THEN node.labels
        WHEN passage.source = 'fact' THEN (
            SELECT memory_labels(kind, tags, source, metadata) FROM node_versions
            WHERE tenant_id = :tenant_id AND same_key(id, passage.version_id) ORDER BY id LIMIT 1
        )
    END, '{}') AS labels
FROM (
    SELECT id, graph_id, node_id, memory_id, version_id, source, place, text, said_at, said_offset, removed_revision
    FROM passages
    WHERE tenant_id = :tenant_id AND words_version < 4 AND words_version < :words_version
    ORDER BY id
    LIMIT :limit
) AS passage
LEFT JOIN LATERAL (
    SELECT name, memory_labels(kind, tags, source, metadata) AS labels, (
        SELECT left(string_agg(name, ' ' ORDER BY name), 4000) FROM (
            SELECT name FROM aliases
            WHERE tenant_id = :tenant_id AND same_key(node_id, passage.node_id) AND is_live(removed_revision)
            ORDER BY node_id, name LIMIT 500
        ) AS first_names
    ) AS aliases
    FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, passage.node_id)
    ORDER BY id LIMIT 1
) AS node ON true
ORDER BY passage.id;

-- name: replace_words
-- Replace the lexemes of passages of a graph (:ids, in order) by those of another analysis, and the days that they name,
-- under the lock of the graph's index, and put those that are live into the worker's queue, behind all that is new, so that the words around them are
-- replaced, too. What was removed keeps its lexemes beside the new ones: the names that its entity had are among them.
UPDATE passages p SET tsv = CASE WHEN p.removed_revision IS NULL THEN i.words::tsvector
    ELSE p.tsv || i.words::tsvector END, named_days = CASE WHEN p.removed_revision IS NULL THEN i.named_days::integer[]
        ELSE p.named_days END,
    words_version = :words_version, settled = p.settled AND p.removed_revision IS NOT NULL,
    bulk = p.bulk OR p.removed_revision IS NULL
FROM unnest(:ids::uuid[], :words::text[], :named_days::text[]) AS i (id, words, named_days)
WHERE p.tenant_id = :tenant_id AND p.id = ANY (:ids::uuid[]) AND p.id = i.id AND p.graph_id = :graph_id
    AND p.words_version < :words_version
RETURNING p.id;

-- name: any_other_words
-- Whether a graph has live passages that were analysed before :words_version.
SELECT EXISTS (
    SELECT 1 FROM passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND words_version < 4 AND words_version < :words_version
);

-- name: forget_counts
-- Have the words of a graph counted again.
UPDATE graph_indexes SET memories_counted = -1000000 WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- fragment: changed
-- Graphs that had notably fewer or more memories when their words were last counted.
graph_heads h
JOIN graph_indexes i ON i.tenant_id = h.tenant_id AND i.graph_id = h.graph_id
WHERE h.tenant_id = :tenant_id AND (h.entities + h.facts + h.observations)
    NOT BETWEEN i.memories_counted / 1.2 - 5 AND i.memories_counted * 1.2 + 5

-- name: graphs_to_count
-- Graphs whose words are to be counted again, at most :limit: in no fixed order, so that graphs whose count fails do not
-- come first for ever.
SELECT h.graph_id
FROM -- include: changed
ORDER BY random()
LIMIT :limit;

-- name: lock_changed_graph
-- Lock the word counts of a graph that changed, and return how many memories it has. No row where the graph was counted
-- meanwhile or is being counted: two workers would each wait for words that the other wrote. The lock is separate from that
-- of the graph's index, since counting takes seconds and every removal waits for the latter.
SELECT changed.memories
FROM (
    SELECT h.graph_id, h.entities + h.facts + h.observations AS memories
    FROM -- include: changed
        AND h.graph_id = :graph_id
    OFFSET 0
) AS changed
WHERE pg_try_advisory_xact_lock(hashtextextended(changed.graph_id::text, 0));

-- name: lock_term_counts
-- Lock the word counts of a graph.
SELECT pg_advisory_xact_lock(hashtextextended(:graph_id::uuid::text, 0)) AS held;

-- name: count_memories
-- How many memories a graph has.
SELECT entities + facts + observations FROM graph_heads WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: recount_terms
-- Count how many live passages of a graph contain each lexeme, in every :every-th passage, but those of a single passage;
-- and how many have each word as it is written, of a single passage, too: what the parser takes for a word of letters (1,
-- 2), or for such a part of one with hyphens (10, 11). PostgreSQL runs the statements that nothing reads from last, so that
-- the graph's index is locked for a moment only.
WITH counted AS (
    SELECT id, tsv, text FROM passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
        AND (:every = 1 OR ('x' || right(id::text, 6))::bit(24)::integer % :every = 0)
), lexemes AS (
    SELECT entry.lexeme, count(*) * :every AS passages
    FROM counted CROSS JOIN LATERAL unnest(counted.tsv) AS entry
    GROUP BY entry.lexeme
    HAVING count(*) > 1
), written AS (
    SELECT word.word, count(*) * :every AS passages
    FROM counted CROSS JOIN LATERAL (
        SELECT DISTINCT normalize(lower(token)) AS word FROM ts_parse('default', counted.text)
        WHERE tokid IN (1, 2, 10, 11)
    ) AS word
    WHERE char_length(word.word) BETWEEN :min_letters AND :max_letters
    GROUP BY word.word
), words AS (
    SELECT coalesce(lexemes.lexeme, written.word) AS lexeme, coalesce(lexemes.passages, 0) AS passages,
        coalesce(written.passages, 0) AS written
    FROM lexemes FULL JOIN written ON written.word = lexemes.lexeme
), gone AS (
    DELETE FROM terms WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND lexeme NOT IN (SELECT lexeme FROM words)
), noted AS (
    UPDATE graph_indexes SET passages_counted = (SELECT count(*) * :every FROM counted), memories_counted = :memories,
        index_epoch = next_index_epoch(index_epoch)
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
)
INSERT INTO terms (tenant_id, graph_id, lexeme, passages, written)
SELECT :tenant_id, :graph_id, lexeme, passages, written FROM words
ON CONFLICT (tenant_id, graph_id, lexeme) DO UPDATE SET passages = excluded.passages, written = excluded.written
WHERE terms.passages <> excluded.passages OR terms.written <> excluded.written;
