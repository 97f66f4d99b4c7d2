-- Memories are found by the words of their kinds, tags, sources and metadata, too, with little weight; and by the days that
-- texts of before name. The worker analyses passages of before anew, step by step; meanwhile they are found as they were.

-- What a memory says of itself beside its text: its kind, then its tags, then its source, then the texts and whole numbers of
-- its metadata and of the lists in it; 32 at most, of each the first 100 characters (graph/passages/labels.py).
CREATE FUNCTION memory_labels(kind text, tags text[], source text, metadata jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ARRAY(
        SELECT left(l.label, 100)
        FROM (
            SELECT 1 AS part, 0::bigint AS place, 0::bigint AS item, kind AS label
            UNION ALL
            SELECT 2, t.place, 0, t.tag FROM unnest(tags) WITH ORDINALITY AS t (tag, place)
            UNION ALL
            SELECT 3, 0, 0, source
            UNION ALL
            SELECT 4, m.place, v.item, v.value #>> '{}'
            FROM jsonb_each(metadata) WITH ORDINALITY AS m (key, value, place)
            CROSS JOIN LATERAL jsonb_array_elements(
                CASE WHEN jsonb_typeof(m.value) = 'array' THEN m.value ELSE jsonb_build_array(m.value) END
            ) WITH ORDINALITY AS v (value, item)
            WHERE jsonb_typeof(v.value) = 'string' OR v.value::text ~ '^-?[0-9]+$'
        ) AS l
        WHERE l.label <> ''
        ORDER BY l.part, l.place, l.item
        LIMIT 32
    )
$$;
REVOKE ALL ON FUNCTION memory_labels(text, text[], text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memory_labels(text, text[], text, jsonb) TO recollect_app;

-- The worker's queue of passages to analyse anew. While it is made, writing passages waits.
DROP INDEX passages_other_words;
CREATE INDEX passages_other_words ON passages (tenant_id, id) WHERE words_version < 3;

-- Tenants with labels or passages to analyse anew: ids only.
CREATE OR REPLACE FUNCTION tenants_with_other_words()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND (
        EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND p.words_version < 3)
        OR EXISTS (
            SELECT 1 FROM nodes n
            WHERE n.tenant_id = t.id AND n.labels_version < 1 AND n.removed_revision IS NULL
                AND (n.summary IS NOT NULL OR n.tags <> '{}')
        )
    )
$$;

-- As before. Words of labels have the weight B, and rank lowest.
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
