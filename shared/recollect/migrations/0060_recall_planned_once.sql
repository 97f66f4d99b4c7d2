-- What a recall asks by keys alone is planned once a session. Sessions have every statement planned with its values
-- (`session_settings` in platform/connections.py), for partial indexes of vectors: of these, planning took 1 to 3 ms and
-- running .05. What looks for names and words is planned with its values, too: by a plan for any tenant, of which most are
-- small, PostgreSQL goes through all of a large graph (measured: 52 ms instead of 1). Plans are made again whenever PostgreSQL comes to know more of the tables. Nothing here is looked up by
-- going through a table, however small it was when a plan was made (enable_seqscan).

-- The words of texts, by place from 0, each with how many passages of a graph hold it (at least 1).
CREATE FUNCTION words_of(tenant uuid, graph uuid, texts text[])
RETURNS TABLE (place bigint, words jsonb)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT /* passages.words_of */ i.place - 1, (
        SELECT coalesce(jsonb_object_agg(w.lexeme, coalesce(t.passages, 1)), '{}')
        FROM unnest(tsvector_to_array(to_tsvector('english', i.text))) AS w (lexeme)
        LEFT JOIN LATERAL (
            SELECT passages FROM terms
            WHERE tenant_id = tenant AND graph_id = graph AND lexeme BETWEEN w.lexeme AND w.lexeme
            ORDER BY lexeme LIMIT 1
        ) AS t ON true
    )
    FROM unnest(texts) WITH ORDINALITY AS i (text, place);
END $$;

-- How many live passages of a graph have no vector yet, counted up to `most`.
CREATE FUNCTION count_waiting(tenant uuid, graph uuid, most bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT /* passages.count_waiting */ count(*) FROM (
            SELECT FROM passages
            WHERE tenant_id = tenant AND graph_id = graph AND NOT settled AND embedding_model IS NULL
                AND removed_revision IS NULL
            LIMIT most
        ) AS waiting
    );
END $$;

-- When the next memory or node of a graph expires. Two indexes tell it, however many there are.
CREATE FUNCTION next_expiry(tenant uuid, graph uuid)
RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT /* recall.next_expiry */ least(
            (SELECT min(p.expires_at) FROM passages p
            WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
                AND p.expires_at > statement_timestamp()),
            (SELECT min(n.expires_at) FROM nodes n
            WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
                AND n.expires_at > statement_timestamp()))
    );
END $$;

-- Live entities that have one of these names, or had it before a merge: exactly, or in small letters (lowered) where the
-- name has min_length characters or more. At most `most`, oldest first. The names come as arrays, and what a node must be
-- calls for no partial index where aliases are joined to nodes: else a planner without statistics compares each with every
-- entity.
CREATE FUNCTION entities_named(tenant uuid, graph uuid, names text[], lowered text[], min_length bigint, most bigint)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT /* search.entities_named */ id FROM search_nodes
        WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
            AND (name = ANY (names) OR (lower(name) = ANY (lowered) AND length(name) >= min_length))
            AND NOT placeholder AND status <> 'archived' AND (expires_at IS NULL OR expires_at > statement_timestamp())
        UNION
        SELECT n.id
        FROM aliases a
        JOIN nodes n ON n.tenant_id = tenant AND n.id = a.node_id
        WHERE a.tenant_id = tenant AND a.graph_id = graph AND a.removed_revision IS NULL
            AND (a.name = ANY (names) OR (lower(a.name) = ANY (lowered) AND length(a.name) >= min_length))
            AND coalesce(n.removed_revision, 0) = 0 AND NOT n.placeholder AND n.status <> 'archived'
            AND coalesce(n.expires_at > statement_timestamp(), true)
        ORDER BY id
        LIMIT most
    );
END $$;

-- The passages of a graph, `most` each, that are best by their own words (words) and by the words around them
-- (context_words), each term weighted by its idf; without what is archived, expired or, unless outdated_too, outdated. By
-- the indexes of words and no others (enable_indexscan): to go through a graph and look at each passage for words that half
-- of them hold takes twice as long, which a planner does not know.
CREATE FUNCTION find_by_words(tenant uuid, graph uuid, terms text[], idfs double precision[], words tsquery,
    context_words tsquery, most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off SET enable_indexscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH /* recall.find_by_words */ asked AS MATERIALIZED (
        SELECT term::tsquery AS query, idf FROM unnest(terms, idfs) AS t (term, idf)
    ), unusual AS MATERIALIZED (
        SELECT n.id FROM search_nodes n
        WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
            AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
            AND (n.status = 'archived' OR (n.status = 'outdated' AND NOT outdated_too)
                OR n.expires_at <= statement_timestamp())
    ), eligible AS NOT MATERIALIZED (
        SELECT p.id, p.node_id, p.source, p.tsv, p.far
        FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
            AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp()) AND (outdated_too OR NOT p.outdated)
            AND p.node_id NOT IN (SELECT id FROM unusual)
    )
    (SELECT e.id, e.node_id, e.source FROM eligible e
    WHERE e.tsv @@ words
    ORDER BY (SELECT sum(t.idf * ts_rank(e.tsv, t.query)) FROM asked t) DESC, e.id
    LIMIT most)
    UNION
    (SELECT e.id, e.node_id, e.source FROM eligible e
    WHERE e.far @@ context_words
    ORDER BY (
        SELECT sum(t.idf * ts_rank(f.far, t.query)) FROM (SELECT setweight(e.far, 'D') AS far OFFSET 0) f CROSS JOIN asked t
    ) DESC, e.id
    LIMIT most);
END $$;

REVOKE ALL ON FUNCTION words_of(uuid, uuid, text[]), count_waiting(uuid, uuid, bigint), next_expiry(uuid, uuid),
    entities_named(uuid, uuid, text[], text[], bigint, bigint),
    find_by_words(uuid, uuid, text[], double precision[], tsquery, tsquery, bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION words_of(uuid, uuid, text[]), count_waiting(uuid, uuid, bigint), next_expiry(uuid, uuid),
    entities_named(uuid, uuid, text[], text[], bigint, bigint),
    find_by_words(uuid, uuid, text[], double precision[], tsquery, tsquery, bigint, boolean) TO recollect_app;
