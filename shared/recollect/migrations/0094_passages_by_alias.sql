-- Passages of the entities that a question names by another name than their first: passages have only the words of that one.
-- At most `most` of each entity, in no particular order.
CREATE FUNCTION find_by_alias(tenant uuid, graph uuid, entities uuid[], phrases text[], most bigint, outdated_too boolean)
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
        SELECT name FROM nodes WHERE tenant_id = tenant AND id BETWEEN i.id AND i.id ORDER BY id LIMIT 1
    ) AS n
    CROSS JOIN LATERAL (
        SELECT e.id, e.node_id, e.source FROM search_passages e
        WHERE e.tenant_id = tenant AND e.node_id BETWEEN i.id AND i.id AND (e.graph_id = graph) IS TRUE
            AND coalesce(e.removed_revision, 0) = 0
            AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp()) AND (outdated_too OR NOT e.outdated)
        ORDER BY e.node_id LIMIT most
    ) AS p
    WHERE lower(n.name) <> ALL (phrases) AND (NOT unusual OR is_node_shown(tenant, i.id, outdated_too));
END $$;

REVOKE ALL ON FUNCTION find_by_alias(uuid, uuid, uuid[], text[], bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_by_alias(uuid, uuid, uuid[], text[], bigint, boolean) TO recollect_app;
