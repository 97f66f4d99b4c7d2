-- A recall of a large graph is planned once a session, too. What only a plan for this very graph does well is little: the
-- vector index, which is of one graph, and the words, which many passages or few may hold.

-- The live nodes of a graph that recall leaves out: what is archived, expired or, unless outdated_too, outdated.
CREATE FUNCTION nodes_left_out(tenant uuid, graph uuid, outdated_too boolean)
RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN QUERY SELECT /* recall.nodes_left_out */ n.id FROM search_nodes n
    WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
        AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
        AND (n.status = 'archived' OR (n.status = 'outdated' AND NOT outdated_too)
            OR n.expires_at <= statement_timestamp());
END $$;

-- The passages of a graph, at most `most`, that are nearest to a vector by its vector index, which is of the vectors of
-- model `embedder`, so long; without what is archived, expired or, unless outdated_too, outdated. The index is written into
-- the statement that reads it: a plan for any graph may not use it. Most graphs leave out little, so that half as many
-- again are enough. Where they are not, the index is searched on, for ten times as many each time (hnsw.iterative_scan):
-- to be ready for that takes an eighth of the time of a search (measured). What it read at first comes first then, too.
CREATE FUNCTION find_nearest(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, most bigint,
    outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    near uuid[];
    wanted bigint := most * 3 / 2;
    seen bigint := 0;
    found bigint := 0;
    added bigint;
    searched_on boolean := false;
BEGIN
    PERFORM set_config('hnsw.iterative_scan', 'off', true);
    LOOP
        EXECUTE format(
            'SELECT /* recall.nearest_by_index */ ARRAY('
            'SELECT passage_id FROM searched_vectors WHERE tenant_id = %L AND graph_id = %L AND live AND model = %L '
            'ORDER BY embedding::halfvec(%s) <=> $1 LIMIT $2 OFFSET $3)', tenant, graph, embedder, dimensions)
            INTO near USING vector, wanted, seen;
        RETURN QUERY SELECT /* recall.find_nearest */ p.id, p.node_id, p.source
        FROM unnest(near) WITH ORDINALITY AS v (passage_id, place)
        CROSS JOIN LATERAL (
            SELECT e.id, e.node_id, e.source FROM search_passages e
            WHERE e.tenant_id = tenant AND e.id BETWEEN v.passage_id AND v.passage_id AND e.graph_id = graph
                AND coalesce(e.removed_revision, 0) = 0 AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp())
                AND (outdated_too OR NOT e.outdated)
            ORDER BY e.id LIMIT 1
        ) AS p
        WHERE p.node_id NOT IN (SELECT nodes_left_out(tenant, graph, outdated_too))
        ORDER BY v.place
        LIMIT most - found;
        GET DIAGNOSTICS added = ROW_COUNT;
        found := found + added;
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);  -- As sessions have it.
        EXIT WHEN found >= most OR (searched_on AND cardinality(near) < wanted);
        searched_on := true;
        seen := seen + cardinality(near);
        wanted := wanted * 10;
    END LOOP;
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
