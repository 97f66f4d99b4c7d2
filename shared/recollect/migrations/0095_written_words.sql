-- The words of a graph as they are written, by which mistyped words of questions are corrected. A lexeme is often no word:
-- that of "cookies" is "cooki". written: how many live passages have the lexeme as a word, in small letters; passages: how
-- many have it as a lexeme, 0 where only one has.
ALTER TABLE terms ADD COLUMN written bigint NOT NULL DEFAULT 0;
CREATE INDEX terms_by_first_letter ON terms (tenant_id, graph_id, char_length(lexeme), left(lexeme, 1), written DESC)
    WHERE written > 0;
CREATE INDEX terms_by_last_letter ON terms (tenant_id, graph_id, char_length(lexeme), right(lexeme, 1), written DESC)
    WHERE written > 0;

-- As before, where a word has a row for being written in one passage.
CREATE OR REPLACE FUNCTION words_of(tenant uuid, graph uuid, texts text[])
RETURNS TABLE (place bigint, words jsonb)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT /* passages.words_of */ i.place - 1, (
        SELECT coalesce(jsonb_object_agg(w.lexeme, greatest(t.passages, 1)), '{}')
        FROM unnest(tsvector_to_array(to_tsvector('english', plain_apostrophes(i.text)))) AS w (lexeme)
        LEFT JOIN LATERAL (
            SELECT passages FROM terms
            WHERE tenant_id = tenant AND graph_id = graph AND lexeme BETWEEN w.lexeme AND w.lexeme
            ORDER BY lexeme LIMIT 1
        ) AS t ON true
    )
    FROM unnest(texts) WITH ORDINALITY AS i (text, place);
END $$;

-- For each of these words that no passage has (by the query for it), words of the graph of about its length with the same first or last letter,
-- the most frequent first; `most` of one length and letter, at most.
CREATE FUNCTION similar_words(tenant uuid, graph uuid, unusual text[], queries text[], most bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    unknown text[];
BEGIN
    IF cardinality(unusual) = 0 THEN
        RETURN '{}';
    END IF;
    -- First, and by itself: nearly all words are known, and looking for similar ones costs far more.
    unknown := ARRAY(
        SELECT /* recall.unknown_words */ u.word FROM unnest(unusual, queries) AS u (word, query)
        WHERE NOT EXISTS (
            SELECT FROM terms
            WHERE tenant_id = tenant AND graph_id = graph AND lexeme BETWEEN u.word AND u.word AND written > 0
        ) AND NOT EXISTS (
            SELECT FROM search_passages p
            WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
                AND p.tsv @@ u.query::tsquery
        )
    );
    IF cardinality(unknown) = 0 THEN
        RETURN '{}';
    END IF;
    RETURN (
        SELECT /* recall.similar_words */ jsonb_object_agg(u.word, s.words)
        FROM unnest(unknown) AS u (word)
        CROSS JOIN LATERAL (
            SELECT coalesce(jsonb_agg(w.lexeme ORDER BY w.written DESC, w.lexeme), '[]') AS words
            FROM (
                SELECT n.lexeme, n.written
                FROM generate_series(char_length(u.word) - 2, char_length(u.word) + 2) AS l (letters)
                CROSS JOIN LATERAL (
                    SELECT lexeme, written FROM terms
                    WHERE tenant_id = tenant AND graph_id = graph AND char_length(lexeme) = l.letters
                        AND left(lexeme, 1) = left(u.word, 1) AND written > 0
                    ORDER BY written DESC LIMIT most
                ) AS n
                UNION
                SELECT n.lexeme, n.written
                FROM generate_series(char_length(u.word) - 2, char_length(u.word) + 2) AS l (letters)
                CROSS JOIN LATERAL (
                    SELECT lexeme, written FROM terms
                    WHERE tenant_id = tenant AND graph_id = graph AND char_length(lexeme) = l.letters
                        AND right(lexeme, 1) = right(u.word, 1) AND written > 0
                    ORDER BY written DESC LIMIT most
                ) AS n
            ) AS w
        ) AS s
    );
END $$;

REVOKE ALL ON FUNCTION similar_words(uuid, uuid, text[], text[], bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION similar_words(uuid, uuid, text[], text[], bigint) TO recollect_app;
