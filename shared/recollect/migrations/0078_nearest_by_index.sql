-- A recall of a large graph is planned once a session, too. What only a plan for this very graph does well is little: the
-- vector index, which is of one graph, and the words, which many passages or few may hold. What recall leaves out is asked of
-- each passage that it would give, best first, and of none where the graph has nothing that may be left out: to read all that
-- expires, of which a graph may be full, took longer than the rest (half of 25,000 nodes: 26 ms of 42).

-- Whether a graph has live nodes that recall may have to leave out (nodes_unusual).
CREATE FUNCTION has_unusual_nodes(tenant uuid, graph uuid)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on
AS $$
BEGIN
    RETURN EXISTS (
        SELECT /* recall.has_unusual_nodes */ FROM search_nodes n
        WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
            AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
    );
END $$;

-- Whether recall shows a node: it is neither archived nor expired nor, unless outdated_too, outdated.
CREATE FUNCTION is_node_shown(tenant uuid, node uuid, outdated_too boolean)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on SET enable_sort = off
AS $$
BEGIN
    RETURN (
        SELECT /* recall.is_node_shown */ n.status <> 'archived' AND (n.status <> 'outdated' OR outdated_too)
            AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
        FROM search_nodes n
        WHERE n.tenant_id = tenant AND n.id BETWEEN node AND node
        ORDER BY n.id LIMIT 1
    );
END $$;

-- The passages of a graph, the `most` nearest to a vector by its vector index, which is of the vectors of model `embedder`, so
-- long; without what is archived, expired or, unless outdated_too, outdated. The index is written into the statement that
-- reads it: a plan for any graph may not use it. Each row is looked up, until there are enough. Where what the index finds at
-- first (hnsw.ef_search) holds too few, it is read again, and searched on (hnsw.iterative_scan): to be ready for that takes
-- an eighth of the time of a search (measured). Then what was found at first comes twice. Nodes are asked here what
-- is_node_shown says: to call that took half as long again, where one in twenty is left.
CREATE FUNCTION find_nearest(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, most bigint,
    outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET enable_seqscan = off SET enable_sort = off
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
                AND ($3 OR NOT e.outdated) AND (NOT $4 OR (
                    SELECT n.status <> 'archived' AND (n.status <> 'outdated' OR $3)
                        AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
                    FROM search_nodes n
                    WHERE n.tenant_id = %2$L AND n.id BETWEEN e.node_id AND e.node_id
                    ORDER BY n.id LIMIT 1
                ))
            ORDER BY e.id LIMIT 1
        ) AS p
        ORDER BY v.distance
        LIMIT $2$nearest$, dimensions, tenant, graph, embedder);
    unusual boolean := has_unusual_nodes(tenant, graph);
    found bigint;
BEGIN
    PERFORM set_config('hnsw.iterative_scan', 'off', true);
    RETURN QUERY EXECUTE statement USING vector, most, outdated_too, unusual;
    GET DIAGNOSTICS found = ROW_COUNT;
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);  -- As sessions have it.
    IF found < most THEN
        RETURN QUERY EXECUTE statement USING vector, most, outdated_too, unusual;
    END IF;
END $$;

-- The same as before, but what it leaves out.
CREATE OR REPLACE FUNCTION find_by_words(tenant uuid, graph uuid, terms text[], idfs double precision[], words tsquery,
    context_words tsquery, most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off SET enable_indexscan = off
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
        SELECT e.id, e.node_id, e.source, (SELECT sum(t.idf * ts_rank(e.tsv, t.query)) FROM asked t) AS rank
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

REVOKE ALL ON FUNCTION has_unusual_nodes(uuid, uuid), is_node_shown(uuid, uuid, boolean),
    find_nearest(uuid, uuid, text, bigint, halfvec, bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION has_unusual_nodes(uuid, uuid), is_node_shown(uuid, uuid, boolean),
    find_nearest(uuid, uuid, text, bigint, halfvec, bigint, boolean) TO recollect_app;
