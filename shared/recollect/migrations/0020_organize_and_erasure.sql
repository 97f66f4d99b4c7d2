-- What searches read tells whether it is archived; erasure takes what was erased out of the planner's statistics, too.

DROP FUNCTION entities_of(uuid, uuid, bigint, timestamptz), entity_of(uuid, uuid, uuid, bigint, timestamptz);

-- The entities of a graph that are to be found: now (at_revision null), or as they were at a revision and its time.
-- It runs as its caller and the planner folds it into the query, where one branch falls away: what is searched now comes
-- through the search views and their indexes, the past under row-level security and without any.
CREATE FUNCTION entities_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    id uuid, name text, kind text, tags text[], importance double precision, created_at timestamptz, updated_at timestamptz,
    status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.id, n.name, n.kind, n.tags, n.importance, n.created_at, n.updated_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
        AND NOT n.placeholder AND n.name IS NOT NULL AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    UNION ALL
    SELECT v.node_id, v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, h.created_at),
        changed_at(tenant, graph, v.node_id, v.created_at, at_revision), v.status
    FROM nodes_at(tenant, graph, at_revision) v
    JOIN nodes h ON h.tenant_id = tenant AND h.id = v.node_id
    WHERE at_revision IS NOT NULL AND NOT v.placeholder AND v.name IS NOT NULL
        AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;

-- One of those entities. Matches are looked up by it, so that they must come by their one right index. Without statistics
-- PostgreSQL takes all indexes that begin with the tenant for equally good and may read the whole graph for each match:
-- hence the conditions here are such that no other index can serve.
CREATE FUNCTION entity_of(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    name text, kind text, tags text[], importance double precision, created_at timestamptz, status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.name, n.kind, n.tags, n.importance, n.created_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.id = node AND n.graph_id IS NOT DISTINCT FROM graph
        AND coalesce(n.removed_revision, 0) = 0 AND NOT n.placeholder AND n.name IS NOT NULL
        AND coalesce(n.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, h.created_at), v.status
    FROM nodes_at(tenant, graph, at_revision) v
    JOIN nodes h ON h.tenant_id = tenant AND h.id = v.node_id
    WHERE at_revision IS NOT NULL AND v.node_id = node AND NOT v.placeholder AND v.name IS NOT NULL
        AND (v.expires_at IS NULL OR v.expires_at > at_time)
$$;

REVOKE ALL ON FUNCTION entities_of(uuid, uuid, bigint, timestamptz), entity_of(uuid, uuid, uuid, bigint, timestamptz)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION entities_of(uuid, uuid, bigint, timestamptz), entity_of(uuid, uuid, uuid, bigint, timestamptz)
    TO recollect_app;

-- Few: how many of a graph's entities a ranked search leaves out.
CREATE INDEX nodes_archived ON nodes (tenant_id, graph_id)
    WHERE status = 'archived' AND removed_revision IS NULL AND name IS NOT NULL AND NOT placeholder;

-- Take new statistics of every table that holds what people wrote. The planner's histograms and most common values are
-- such text, and hold a row that was deleted until the table is analysed again, which autovacuum may not do for weeks. Only
-- the owner may; the application says when: at the end of an erasure, in its transaction. `among` (null: all) leaves out
-- tables of these, and reaches no other; it tells of no tenant. A sample is bounded (30,000 rows), whatever a table has.
-- Answers the tables of which it could not: another was just analysing or vacuuming them, or they are empty, which ANALYZE
-- passes over, and the server is older than 18 and cannot clear what it knows.
CREATE FUNCTION forget_statistics(among text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    can_clear boolean := current_setting('server_version_num')::integer >= 180000;
    held text;
    known record;
    has_rows boolean;
    left_out text[] := '{}';
BEGIN
    FOREACH held IN ARRAY ARRAY['nodes', 'node_versions', 'observations', 'aliases', 'relations', 'passages',
        'passage_vectors', 'terms', 'graphs', 'jobs', 'job_inputs', 'job_outputs']
    LOOP
        CONTINUE WHEN held <> ALL (among);
        BEGIN
            EXECUTE format('LOCK TABLE recollect.%I IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', held);
            IF can_clear THEN
                FOR known IN
                    SELECT s.tablename, s.attname FROM pg_stats s
                    WHERE s.schemaname = 'recollect' AND (s.tablename = held OR s.tablename IN (
                        SELECT i.indexname FROM pg_indexes i WHERE i.schemaname = 'recollect' AND i.tablename = held))
                LOOP
                    EXECUTE 'SELECT pg_clear_attribute_stats($1, $2, $3, false)'
                        USING 'recollect'::text, known.tablename::text, known.attname::text;
                END LOOP;
            END IF;
            EXECUTE format('ANALYZE recollect.%I', held);
            EXECUTE format('SELECT EXISTS (SELECT FROM recollect.%I)', held) INTO has_rows;
            IF NOT (can_clear OR has_rows) THEN
                left_out := left_out || held;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            left_out := left_out || held;
        END;
    END LOOP;
    RETURN left_out;
END
$$;

REVOKE ALL ON FUNCTION forget_statistics(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_statistics(text[]) TO recollect_app;
