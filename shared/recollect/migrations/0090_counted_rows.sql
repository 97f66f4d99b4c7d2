-- What a plan bounds as stored bytes is near what takes the disk: not only the text of rows, but the rows themselves, their
-- entries in indexes and the log. A relation counted the 3 bytes of its type, and takes 530.

-- row_bytes: of the rows of the graph besides their text, changed by triggers alone. rows_counted: whether it includes the
-- rows that there were before this migration, which a worker counts.
ALTER TABLE graph_heads
    ADD COLUMN row_bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN rows_counted boolean NOT NULL DEFAULT false;
ALTER TABLE graph_heads ALTER COLUMN rows_counted SET DEFAULT true;
CREATE INDEX graph_heads_uncounted ON graph_heads (tenant_id) WHERE NOT rows_counted;

-- The bytes that a row counts for besides its text, with its entries in indexes and its passages, as measured for 10,000 rows
-- each. The text of an alias is counted here. The version that says of a node that it is deleted counts for nothing: to
-- delete never takes room.
CREATE FUNCTION row_bytes_of(node nodes) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT 800::bigint
$$;
CREATE FUNCTION row_bytes_of(version node_versions) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE WHEN version.deleted THEN 0::bigint ELSE 1200::bigint END
$$;
CREATE FUNCTION row_bytes_of(statement observations) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT 1400::bigint
$$;
CREATE FUNCTION row_bytes_of(edge relations) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT 530::bigint
$$;
CREATE FUNCTION row_bytes_of(other_name aliases) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT 400::bigint + octet_length(other_name.name)
$$;

-- What a graph counts for. Each revision has one row in the log of changes, which is kept as long as the graph.
CREATE FUNCTION counted_bytes(head graph_heads) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT head.stored_bytes + head.row_bytes + 300 * head.revision
$$;

REVOKE ALL ON FUNCTION row_bytes_of(nodes), row_bytes_of(node_versions), row_bytes_of(observations), row_bytes_of(relations),
    row_bytes_of(aliases), counted_bytes(graph_heads) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION row_bytes_of(nodes), row_bytes_of(node_versions), row_bytes_of(observations), row_bytes_of(relations),
    row_bytes_of(aliases), counted_bytes(graph_heads) TO recollect_app;

-- The triggers of 0025 count rows, too, and nodes and aliases have such triggers. What a node says is in its versions. They
-- name the schema: whoever maintains these tables may have no search path. Whoever writes at this moment is waited for: ALTER
-- TABLE above takes graph_heads, where each writer has locked a row.
DO $migration$
DECLARE
    counted text;
    way record;
    text_of text;
BEGIN
    FOREACH counted IN ARRAY '{nodes,node_versions,observations,relations,aliases}'::text[]
    LOOP
        text_of := CASE WHEN counted IN ('nodes', 'aliases') THEN '0::bigint'
            ELSE 'recollect.bytes_of(ROW(r.*)::recollect.%1$I)' END;
        FOR way IN
            SELECT * FROM (VALUES
                ('insert', 'NEW TABLE AS added', 'SELECT tenant_id, graph_id, text_of, rows_of FROM added r'),
                ('delete', 'OLD TABLE AS gone', 'SELECT tenant_id, graph_id, -text_of, -rows_of FROM gone r'),
                ('update', 'NEW TABLE AS added OLD TABLE AS gone',
                    'SELECT tenant_id, graph_id, text_of, rows_of FROM added r
                    UNION ALL SELECT tenant_id, graph_id, -text_of, -rows_of FROM gone r')
            ) AS w (operation, transition, changed)
            WHERE operation <> 'update' OR counted IN ('observations', 'relations')
        LOOP
            EXECUTE format($function$
                CREATE OR REPLACE FUNCTION %1$I() RETURNS trigger
                LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
                AS $body$
                DECLARE change record;
                BEGIN
                    FOR change IN
                        SELECT tenant_id, graph_id, sum(bytes) AS bytes, sum(row_bytes) AS row_bytes
                        FROM (%2$s) AS c (tenant_id, graph_id, bytes, row_bytes)
                        GROUP BY tenant_id, graph_id HAVING sum(bytes) <> 0 OR sum(row_bytes) <> 0
                        ORDER BY tenant_id, graph_id
                    LOOP
                        UPDATE recollect.graph_heads SET stored_bytes = stored_bytes + change.bytes,
                            row_bytes = row_bytes + change.row_bytes
                        WHERE tenant_id = change.tenant_id AND graph_id = change.graph_id;
                    END LOOP;
                    RETURN NULL;
                END
                $body$
                $function$, counted || '_bytes_' || way.operation, format(
                    replace(replace(way.changed, 'text_of', text_of), 'rows_of',
                        'recollect.row_bytes_of(ROW(r.*)::recollect.%1$I)'), counted));
            EXECUTE format('REVOKE ALL ON FUNCTION %I() FROM PUBLIC', counted || '_bytes_' || way.operation);
            IF counted IN ('nodes', 'aliases') THEN
                EXECUTE format(
                    'CREATE TRIGGER stored_bytes_%2$s AFTER %2$s ON %1$I REFERENCING %3$s
                    FOR EACH STATEMENT EXECUTE FUNCTION %4$I()',
                    counted, way.operation, way.transition, counted || '_bytes_' || way.operation);
            END IF;
        END LOOP;
    END LOOP;
END $migration$;

-- Tenants with graphs whose rows of before are not counted yet, ids only.
CREATE FUNCTION tenants_with_uncounted_rows()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active'
        AND EXISTS (SELECT 1 FROM graph_heads h WHERE h.tenant_id = t.id AND NOT h.rows_counted)
$$;
REVOKE ALL ON FUNCTION tenants_with_uncounted_rows() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_uncounted_rows() TO recollect_app;

-- The plans that come with Recollect bound about as many memories as before, since each counts for more now. Plans that an
-- operator made or changed stay as they are.
UPDATE plans SET stored_bytes = 5 * stored_bytes
WHERE (name, stored_bytes) IN (('free', 100000000), ('team', 2000000000), ('business', 20000000000));
