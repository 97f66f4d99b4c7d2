-- What each graph stores in bytes, kept exact by whatever adds rows or deletes them.

-- stored_bytes: of the text of all versions of its nodes, observations and relations, history included, in UTF-8. Changed
-- by triggers alone.
ALTER TABLE graph_heads ADD COLUMN stored_bytes bigint NOT NULL DEFAULT 0;

-- The bytes of text that a row counts for. The version that says of a node that it is deleted repeats what the one before
-- said, and counts for nothing: to delete never takes room.
CREATE FUNCTION bytes_of(version node_versions) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN version.deleted THEN 0 ELSE octet_length(concat(version.name, version.kind, version.content,
        version.summary, version.source, version.thread, version.reason, version.tags, version.metadata)) END
$$;
CREATE FUNCTION bytes_of(statement observations) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT octet_length(concat(statement.content, statement.kind, statement.source, statement.thread, statement.reason,
        statement.tags, statement.metadata))
$$;
CREATE FUNCTION bytes_of(edge relations) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT octet_length(concat(edge.type, edge.metadata))
$$;
REVOKE ALL ON FUNCTION bytes_of(node_versions), bytes_of(observations), bytes_of(relations) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bytes_of(node_versions), bytes_of(observations), bytes_of(relations) TO recollect_app;

UPDATE graph_heads h SET stored_bytes =
    (SELECT coalesce(sum(bytes_of(v)), 0) FROM node_versions v WHERE v.tenant_id = h.tenant_id AND v.graph_id = h.graph_id)
    + (SELECT coalesce(sum(bytes_of(o)), 0) FROM observations o
        WHERE o.tenant_id = h.tenant_id AND o.graph_id = h.graph_id)
    + (SELECT coalesce(sum(bytes_of(r)), 0) FROM relations r WHERE r.tenant_id = h.tenant_id AND r.graph_id = h.graph_id);

-- For each table and way to change it a trigger with a function of its own, called once a statement with the rows that it
-- changed; planned once a session, not for every call. What versions of nodes say is never changed.
DO $migration$
DECLARE
    counted text;
    way record;
BEGIN
    FOREACH counted IN ARRAY '{node_versions,observations,relations}'::text[]
    LOOP
        FOR way IN
            SELECT * FROM (VALUES
                ('insert', 'NEW TABLE AS added', 'SELECT a.tenant_id, a.graph_id, bytes_of(ROW(a.*)::%1$I) FROM added a'),
                ('delete', 'OLD TABLE AS gone', 'SELECT g.tenant_id, g.graph_id, -bytes_of(ROW(g.*)::%1$I) FROM gone g'),
                ('update', 'NEW TABLE AS added OLD TABLE AS gone',
                    'SELECT a.tenant_id, a.graph_id, bytes_of(ROW(a.*)::%1$I) FROM added a
                    UNION ALL SELECT g.tenant_id, g.graph_id, -bytes_of(ROW(g.*)::%1$I) FROM gone g')
            ) AS w (operation, transition, changed)
            WHERE (counted, operation) <> ('node_versions', 'update')
        LOOP
            EXECUTE format($function$
                CREATE FUNCTION %1$I() RETURNS trigger
                LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
                AS $body$
                DECLARE change record;
                BEGIN
                    FOR change IN
                        SELECT tenant_id, graph_id, sum(bytes) AS bytes FROM (%2$s) AS c (tenant_id, graph_id, bytes)
                        GROUP BY tenant_id, graph_id HAVING sum(bytes) <> 0 ORDER BY tenant_id, graph_id
                    LOOP
                        UPDATE graph_heads SET stored_bytes = stored_bytes + change.bytes
                        WHERE tenant_id = change.tenant_id AND graph_id = change.graph_id;
                    END LOOP;
                    RETURN NULL;
                END
                $body$
                $function$, counted || '_bytes_' || way.operation, format(way.changed, counted));
            EXECUTE format('REVOKE ALL ON FUNCTION %I() FROM PUBLIC', counted || '_bytes_' || way.operation);
            EXECUTE format(
                'CREATE TRIGGER stored_bytes_%2$s AFTER %2$s ON %1$I REFERENCING %3$s
                FOR EACH STATEMENT EXECUTE FUNCTION %4$I()',
                counted, way.operation, way.transition, counted || '_bytes_' || way.operation);
        END LOOP;
    END LOOP;
END $migration$;
