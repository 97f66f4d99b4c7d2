-- A recall of a large graph is planned once a session, too. What only a plan for this very graph does well is little: the
-- vector index, which is of one graph, and the words, which many passages or few may hold.

-- The live nodes of a graph that recall leaves out: what is archived, expired or, unless outdated_too, outdated.
CREATE FUNCTION nodes_left_out(tenant uuid, graph uuid, outdated_too boolean)
RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on
AS $$
BEGIN
    RETURN QUERY SELECT /* recall.nodes_left_out */ n.id FROM search_nodes n
    WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
        AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
        AND (n.status = 'archived' OR (n.status = 'outdated' AND NOT outdated_too)
            OR n.expires_at <= statement_timestamp());
END $$;

-- The passages of a graph, the `most` nearest to a vector by its vector index, which is of the vectors of model `embedder`, so
-- long; without what is archived, expired or, unless outdated_too, outdated. The index is written into the statement that
-- reads it: a plan for any graph may not use it. Each row is looked up, until there are enough. Where what the index finds at
-- first (hnsw.ef_search) holds too few, it is read again, and searched on (hnsw.iterative_scan): to be ready for that takes
-- an eighth of the time of a search (measured). Then what was found at first comes twice.
CREATE FUNCTION find_nearest(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, most bigint,
    outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_sort = off
AS $$
DECLARE
    statement text := format($nearest$
        SELECT /* recall.nearest_by_index */ p.id, p.node_id, p.source
        FROM (
            SELECT passage_id, embedding::halfvec(%1$s) <=> $1 AS distance FROM searched_vectors
            WHERE tenant_id = %2$L AND graph_id = %3$L AND live AND model = %4$L
            ORDER BY embedding::halfvec(%1$s) <=> $1
            LIMIT (SELECT NULL::bigint)
        ) AS v
        CROSS JOIN LATERAL (
            SELECT e.id, e.node_id, e.source FROM search_passages e
            WHERE e.tenant_id = %2$L AND e.id BETWEEN v.passage_id AND v.passage_id AND e.graph_id = %3$L
                AND coalesce(e.removed_revision, 0) = 0 AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp())
                AND ($3 OR NOT e.outdated) AND e.node_id <> ALL ($4)
            ORDER BY e.id LIMIT 1
        ) AS p
        ORDER BY v.distance
        LIMIT $2$nearest$, dimensions, tenant, graph, embedder);
    left_out uuid[] := ARRAY(SELECT nodes_left_out(tenant, graph, outdated_too));
    found bigint;
BEGIN
    PERFORM set_config('hnsw.iterative_scan', 'off', true);
    RETURN QUERY EXECUTE statement USING vector, most, outdated_too, left_out;
    GET DIAGNOSTICS found = ROW_COUNT;
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);  -- As sessions have it.
    IF found < most THEN
        RETURN QUERY EXECUTE statement USING vector, most, outdated_too, left_out;
    END IF;
END $$;

-- The same as before, without planning each time what is left out.
CREATE OR REPLACE FUNCTION find_by_words(tenant uuid, graph uuid, terms text[], idfs double precision[], words tsquery,
    context_words tsquery, most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off SET enable_indexscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH /* recall.find_by_words */ asked AS MATERIALIZED (
        SELECT term::tsquery AS query, idf FROM unnest(terms, idfs) AS t (term, idf)
    ), left_out AS MATERIALIZED (
        SELECT nodes_left_out(tenant, graph, outdated_too) AS id
    ), eligible AS NOT MATERIALIZED (
        SELECT p.id, p.node_id, p.source, p.tsv, p.far
        FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
            AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp()) AND (outdated_too OR NOT p.outdated)
            AND p.node_id NOT IN (SELECT id FROM left_out)
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

REVOKE ALL ON FUNCTION nodes_left_out(uuid, uuid, boolean),
    find_nearest(uuid, uuid, text, bigint, halfvec, bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nodes_left_out(uuid, uuid, boolean),
    find_nearest(uuid, uuid, text, bigint, halfvec, bigint, boolean) TO recollect_app;
