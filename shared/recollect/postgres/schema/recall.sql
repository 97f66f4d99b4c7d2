-- What recall reads: passages by words, vectors, names and days.
--
-- What a recall asks by keys is planned once a session. Sessions have every statement planned with its values
-- (`session_settings`), for partial indexes of vectors; functions here say otherwise (plan_cache_mode). Nothing here
-- is looked up by going through a table, however small it was when a plan was made (enable_seqscan).
--
-- What only a plan for this very graph does well is little: the vector index, which is of one graph, and the words,
-- which many passages or few may hold. What recall leaves out is asked of each passage that it would give, best
-- first, and of none where the graph has nothing that may be left out: to read all that expires, of which a graph may
-- be full, took longer than the rest (half of 25,000 nodes: 26 ms of 42).

-- The passages of a graph, `most` each, that are best by their own words (words) and by the words around them
-- (context_words), each term weighted by its idf; without what is archived, expired or, unless outdated_too,
-- outdated. Variants and parts of words, and words that most sentences have, have the weight C: here it counts as
-- much as D. Words of labels have the weight B, and rank lowest. By the indexes of words and no others
-- (enable_indexscan): to go through a graph and look at each passage for words that half of them hold takes twice as
-- long, which a planner does not know. It is planned once a session: to plan it took an eighth of a small recall. A
-- plan for any words read all of a tenant's rows by their key as well, to join both: it reads the index of words
-- alone where an entry of an index costs more (cpu_index_tuple_cost).
CREATE FUNCTION find_by_words(tenant uuid, graph uuid, terms text[], idfs double precision[], words tsquery,
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
            AND is_current(p.expires_at) AND (outdated_too OR NOT p.outdated)
    )
    (SELECT c.id, c.node_id, c.source
    FROM (
        SELECT e.id, e.node_id, e.source, (
            SELECT sum(t.idf * ts_rank('{0.1, 0.1, 0.03, 1.0}', e.tsv, t.query)) FROM asked t
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

-- Which kinds of live vectors a graph has, of the values of other_language (passages.sql).
CREATE FUNCTION kinds_of_vectors(tenant uuid, graph uuid)
RETURNS boolean[]
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT /* recall.kinds_of_vectors */ k.kind FROM (VALUES (false), (true)) AS k (kind)
        WHERE EXISTS (
            SELECT FROM searched_vectors v
            WHERE v.tenant_id = tenant AND v.graph_id = graph AND v.live AND v.other_language = k.kind
        )
    );
END $$;

-- The passages of a graph, the `most` nearest to a vector of those with one kind of vectors (other), by the kind's vector
-- index, which is of the vectors of model `embedder`, so long, and is searched with this width (hnsw.ef_search); without
-- what is archived, expired or, unless outdated_too, outdated. A kind without an index has few vectors, and each is
-- compared. The index is written into the statement that reads it: a plan for any graph may not use it. Each row is looked
-- up, until there are enough. Where what the index finds at first (hnsw.ef_search) holds too few, it is read again, and
-- searched on (hnsw.iterative_scan): to be ready for that takes an eighth of the time of a search (measured). Then what was
-- found at first comes twice. Nodes are asked here what is_node_shown says: to call that took half as long again, where one
-- in twenty is left.
-- distance: that of recall, by which passages of both kinds are comparable (`english`, other_scale: SimilarityThresholds).
-- An index has one distance. It orders the passages of a kind as recall does, but those that have what the question has not
-- (`english`): of these twice as many are found, and ordered anew.
CREATE FUNCTION find_nearest_of_kind(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, width bigint,
    most bigint, outdated_too boolean, english integer, other_scale double precision, other boolean)
RETURNS TABLE (id uuid, node_id uuid, source text, distance double precision)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET enable_seqscan = off SET enable_sort = off
AS $$
DECLARE
    template text := $nearest$
        SELECT /* recall.nearest_by_index */ p.id, p.node_id, p.source, v.distance
        FROM (
            SELECT passage_id, of_index, %5$s AS distance
            FROM (
                SELECT passage_id, embedding, embedding::halfvec(%1$s) <=> $1 AS of_index FROM searched_vectors
                WHERE tenant_id = %2$L AND graph_id = %3$L AND live AND model = %4$L AND other_language = %6$L
                ORDER BY embedding::halfvec(%1$s) <=> $1
                LIMIT (SELECT NULL::bigint)
            ) AS i
            ORDER BY %7$I
            LIMIT (SELECT NULL::bigint)
        ) AS v
        CROSS JOIN LATERAL (
            SELECT e.id, e.node_id, e.source FROM search_passages e
            WHERE e.tenant_id = %2$L AND same_key(e.id, v.passage_id) AND e.graph_id = %3$L
                AND is_live(e.removed_revision) AND is_current(e.expires_at)
                AND ($3 OR NOT e.outdated) AND (NOT $4 OR (
                    SELECT n.status <> 'archived' AND (n.status <> 'outdated' OR $3)
                        AND is_current(n.expires_at)
                    FROM search_nodes n
                    WHERE n.tenant_id = %2$L AND same_key(n.id, e.node_id)
                    ORDER BY n.id LIMIT 1
                ))
            ORDER BY e.id LIMIT 1
        ) AS p
        ORDER BY v.%7$I
        LIMIT $2$nearest$;
    unusual boolean := has_unusual_nodes(tenant, graph);
    is_english boolean := english = 0 OR subvector(vector, 1, 1) <> '[0]'::halfvec;
    anew boolean := NOT is_english AND NOT other;
    distance_of text := CASE
        WHEN anew THEN format('subvector(embedding, %1$s + 1, %2$s - %1$s) <=> subvector($1, %1$s + 1, %2$s - %1$s)',
            english, dimensions)
        WHEN is_english AND other AND english > 0 THEN format('1 - %s * (1 - of_index)', other_scale)
        ELSE 'of_index' END;
    found bigint;
BEGIN
    PERFORM set_config('hnsw.ef_search', CASE WHEN anew THEN least(2 * width, 1000) ELSE width END::text, true),
        set_config('hnsw.iterative_scan', 'off', true);
    RETURN QUERY EXECUTE format(template, dimensions, tenant, graph, embedder, distance_of, other,
        CASE WHEN anew THEN 'distance' ELSE 'of_index' END) USING vector, most, outdated_too, unusual;
    GET DIAGNOSTICS found = ROW_COUNT;
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);  -- As sessions have it.
    IF found < most THEN
        RETURN QUERY EXECUTE format(template, dimensions, tenant, graph, embedder, distance_of, other, 'of_index')
            USING vector, most, outdated_too, unusual;
    END IF;
END $$;

-- The same of both kinds, the `most` nearest in all.
CREATE FUNCTION find_nearest(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, width bigint,
    most bigint, outdated_too boolean, english integer, other_scale double precision)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    kinds boolean[] := kinds_of_vectors(tenant, graph);
BEGIN
    IF cardinality(kinds) = 1 THEN
        RETURN QUERY SELECT f.id, f.node_id, f.source FROM find_nearest_of_kind(tenant, graph, embedder, dimensions,
            vector, width, most, outdated_too, english, other_scale, kinds[1]) AS f;
    ELSE
        RETURN QUERY SELECT f.id, f.node_id, f.source FROM (
            SELECT DISTINCT o.* FROM unnest(kinds) AS k (kind)
            CROSS JOIN LATERAL find_nearest_of_kind(tenant, graph, embedder, dimensions, vector, width, most, outdated_too,
                english, other_scale, k.kind) AS o
        ) AS f
        ORDER BY f.distance, f.id
        LIMIT most;
    END IF;
END $$;

-- Passages of the entities that a question names by another name than their first: passages have only the words of
-- that one. At most `most` of each entity, in no particular order.
CREATE FUNCTION find_by_alias(tenant uuid, graph uuid, entities uuid[], phrases text[], most bigint,
    outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean;
BEGIN
    IF cardinality(entities) = 0 THEN
        RETURN;
    END IF;
    unusual := has_unusual_nodes(tenant, graph);
    RETURN QUERY SELECT /* recall.find_by_alias */ p.id, p.node_id, p.source
    FROM unnest(entities) AS i (id)
    CROSS JOIN LATERAL (
        SELECT name FROM nodes WHERE tenant_id = tenant AND same_key(id, i.id) ORDER BY id LIMIT 1
    ) AS n
    CROSS JOIN LATERAL (
        SELECT e.id, e.node_id, e.source FROM search_passages e
        WHERE e.tenant_id = tenant AND same_key(e.node_id, i.id) AND as_filter(e.graph_id = graph)
            AND is_live(e.removed_revision) AND is_current(e.expires_at) AND (outdated_too OR NOT e.outdated)
        ORDER BY e.node_id LIMIT most
    ) AS p
    WHERE lower(n.name) <> ALL (phrases) AND (NOT unusual OR is_node_shown(tenant, i.id, outdated_too));
END $$;

-- The newest passages of a graph, `most` of them, that were said within any of some ranges of days (said_within);
-- without what is archived, expired or, unless outdated_too, outdated. Read in the order of the times (enable_sort):
-- no clock is further from UTC than 26 hours.
CREATE FUNCTION find_said_within(tenant uuid, graph uuid, starts timestamptz[], finishes timestamptz[], firsts date[],
    lasts date[], most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY SELECT /* recall.said_within */ s.id, s.node_id, s.source
    FROM unnest(starts, finishes, firsts, lasts) AS r (start, finish, first, last)
    CROSS JOIN LATERAL (
        SELECT p.id, p.node_id, p.source, p.said_at FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
            AND p.said_at >= r.start - interval '26 hours' AND p.said_at < r.finish + interval '26 hours'
            AND said_within(p.said_at, p.said_offset, r.start, r.finish, r.first, r.last)
            AND is_current(p.expires_at) AND (outdated_too OR NOT p.outdated)
            AND (NOT unusual OR is_node_shown(tenant, p.node_id, outdated_too))
        ORDER BY p.said_at DESC, p.id DESC
        LIMIT most
    ) AS s
    ORDER BY s.said_at DESC, s.id DESC
    LIMIT most;
END $$;

-- The newest passages of a graph, `most` of them, whose text names one of these days; without the same. By the index of
-- named days and no others: no other is for live passages and their graph where the condition is written so.
CREATE FUNCTION find_naming_days(tenant uuid, graph uuid, days integer[], most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY SELECT /* recall.naming_days */ n.id, n.node_id, n.source
    FROM (
        SELECT p.id, p.node_id, p.source, p.said_at FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND is_live(p.removed_revision) AND p.named_days && days
            AND is_current(p.expires_at) AND (outdated_too OR NOT p.outdated)
        ORDER BY p.said_at DESC, p.id DESC
        LIMIT (SELECT NULL::bigint)
    ) AS n
    WHERE NOT unusual OR is_node_shown(tenant, n.node_id, outdated_too)
    ORDER BY n.said_at DESC, n.id DESC
    LIMIT most;
END $$;
