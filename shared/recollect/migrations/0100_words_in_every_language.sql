-- Passages are found by lexemes that Recollect itself finds, in every script, not PostgreSQL's parser. What was written
-- before is analysed anew by the worker, step by step; meanwhile either is found.

-- words_version: of the analysis that made tsv. Old rows are not written; a process of the previous release, which still
-- runs during an upgrade, leaves the default.
-- squawk-ignore prefer-bigint-over-smallint
ALTER TABLE passages ADD COLUMN words_version smallint NOT NULL DEFAULT 1;

-- The worker's queue of passages to analyse anew: empty once all are. While it is made, writing passages waits.
CREATE INDEX passages_other_words ON passages (tenant_id, id) WHERE words_version < 2;

-- Tenants with such passages: ids only.
CREATE FUNCTION tenants_with_other_words()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND p.words_version < 2)
$$;

-- How many live passages of a graph have each of these lexemes: those that were counted (terms), and of the others, which
-- few have, the passages themselves, up to most_looked_at of them, for the first 400 of these lexemes: each is a search of
-- the index. What no live passage has is left out.
CREATE FUNCTION count_words(tenant uuid, graph uuid, lexemes text[], most_looked_at bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    counted jsonb;
    others text[];
    found jsonb;
BEGIN
    SELECT /* passages.counted_words */ coalesce(jsonb_object_agg(t.lexeme, t.passages), '{}') INTO counted
    FROM terms t
    WHERE t.tenant_id = tenant AND t.graph_id = graph AND t.lexeme = ANY (lexemes) AND t.passages > 0;
    IF most_looked_at = 0 THEN
        RETURN counted;
    END IF;
    others := ARRAY(SELECT w.lexeme FROM unnest(lexemes) AS w (lexeme) WHERE NOT counted ? w.lexeme LIMIT 400);
    IF cardinality(others) = 0 THEN
        RETURN counted;
    END IF;
    SELECT /* passages.rare_words */ jsonb_object_agg(w.lexeme, w.passages) INTO found
    FROM (
        SELECT w.lexeme, count(*) AS passages
        FROM (
            SELECT tsv FROM search_passages
            WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND tsv @@ (
                SELECT string_agg('''' || replace(replace(o.lexeme, E'\\', E'\\\\'), '''', '''''') || '''', ' | ')::tsquery
                FROM unnest(others) AS o (lexeme)
            )
            LIMIT most_looked_at
        ) AS p
        CROSS JOIN LATERAL unnest(tsvector_to_array(p.tsv)) AS w (lexeme)
        JOIN unnest(others) AS o (lexeme) ON o.lexeme = w.lexeme
        GROUP BY w.lexeme
    ) AS w;
    RETURN counted || coalesce(found, '{}');
END $$;

-- As before. Variants and parts of words, and words that most sentences have, have the weight C: here it counts as much as D.
CREATE OR REPLACE FUNCTION find_by_words(tenant uuid, graph uuid, terms text[], idfs double precision[], words tsquery,
    context_words tsquery, most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY WITH /* recall.find_by_words */ asked AS MATERIALIZED (
        SELECT term::tsquery AS query, idf FROM unnest(terms, idfs) AS t (term, idf)
    ), eligible AS NOT MATERIALIZED (
        SELECT p.id, p.node_id, p.source, p.tsv, p.far
        FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
            AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp()) AND (outdated_too OR NOT p.outdated)
    )
    (SELECT c.id, c.node_id, c.source
    FROM (
        SELECT e.id, e.node_id, e.source, (
            SELECT sum(t.idf * ts_rank('{0.1, 0.1, 0.4, 1.0}', e.tsv, t.query)) FROM asked t
        ) AS rank
        FROM eligible e
        WHERE e.tsv @@ words
        ORDER BY rank DESC, e.id
        LIMIT (SELECT NULL::bigint)
    ) AS c
    WHERE NOT unusual OR is_node_shown(tenant, c.node_id, outdated_too)
    ORDER BY c.rank DESC, c.id
    LIMIT most)
    UNION
    (SELECT c.id, c.node_id, c.source
    FROM (
        SELECT e.id, e.node_id, e.source, (
            SELECT sum(t.idf * ts_rank(f.far, t.query)) FROM (SELECT setweight(e.far, 'D') AS far OFFSET 0) f CROSS JOIN asked t
        ) AS rank
        FROM eligible e
        WHERE e.far @@ context_words
        ORDER BY rank DESC, e.id
        LIMIT (SELECT NULL::bigint)
    ) AS c
    WHERE NOT unusual OR is_node_shown(tenant, c.node_id, outdated_too)
    ORDER BY c.rank DESC, c.id
    LIMIT most);
END $$;

REVOKE ALL ON FUNCTION tenants_with_other_words(), count_words(uuid, uuid, text[], bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_other_words(), count_words(uuid, uuid, text[], bigint) TO recollect_app;
