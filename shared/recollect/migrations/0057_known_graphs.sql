-- A gateway that knows a graph from an earlier call has the database confirm that in the round trip that begins the next one,
-- and need not ask for the graph then.

-- Raise RC004 unless the tenant has this graph just as it was when it had this fingerprint (`hash_record_extended` of its
-- row): with that name, and configured so.
CREATE FUNCTION require_graph(graph uuid, fingerprint bigint)
RETURNS void
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM graphs g
        WHERE g.tenant_id = nullif(current_setting('recollect.tenant_id', true), '')::uuid AND g.id = graph
            AND hash_record_extended(g, 0) = fingerprint
    ) THEN
        RAISE EXCEPTION 'the graph is not what it was' USING ERRCODE = 'RC004';
    END IF;
END $$;
REVOKE ALL ON FUNCTION require_graph(uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION require_graph(uuid, bigint) TO recollect_app;
