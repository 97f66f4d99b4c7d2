-- What a graph counts for in bytes: functions of each row, and the triggers that add them up in graph_heads.
--
-- What a plan bounds as stored bytes is near what takes the disk: not only the text of rows, but the rows themselves,
-- their entries in indexes and the log.

-- What a graph counts for. Each revision has one row in the log of changes, which is kept as long as the graph.
CREATE FUNCTION counted_bytes(head graph_heads) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT head.stored_bytes + head.row_bytes + 300 * head.revision
$$;

-- The bytes of text that a row counts for. The version that says of a node that it is deleted repeats what the one
-- before said, and counts for nothing: to delete never takes room.
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

-- The bytes that a row counts for besides its text, with its entries in indexes and its passages, as measured for
-- 10,000 rows each. The text of an alias is counted here. The version that says of a node that it is deleted counts
-- for nothing: to delete never takes room.
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

-- Each table and each way to change it has a trigger with a function of its own, which is called once a statement
-- with the rows that it changed, and is planned once a session, not for every call. What a node says is in its
-- versions, which never change. The functions name the schema: whoever maintains these tables may have no search
-- path.
DO $do$
DECLARE
    body constant text := $body$
DECLARE change record;
BEGIN
    FOR change IN
        SELECT tenant_id, graph_id, sum(bytes) AS bytes, sum(row_bytes) AS row_bytes
        FROM (
            %s
        ) AS c (tenant_id, graph_id, bytes, row_bytes)
        GROUP BY tenant_id, graph_id HAVING sum(bytes) <> 0 OR sum(row_bytes) <> 0
        ORDER BY tenant_id, graph_id
    LOOP
        UPDATE recollect.graph_heads SET stored_bytes = stored_bytes + change.bytes,
            row_bytes = row_bytes + change.row_bytes
        WHERE tenant_id = change.tenant_id AND graph_id = change.graph_id;
    END LOOP;
    RETURN NULL;
END
$body$;
    changed constant text := $changed$SELECT tenant_id, graph_id, %1$s%2$s,
                %1$srecollect.row_bytes_of(ROW(r.*)::recollect.%3$s)
            FROM %4$s r$changed$;
    made record;
    added text;
    gone text;
BEGIN
    FOR made IN
        SELECT tables.name, tables.bytes, events.name AS event, events.rows
        FROM (VALUES
            ('nodes', '0::bigint', false),
            ('node_versions', 'recollect.bytes_of(ROW(r.*)::recollect.node_versions)', false),
            ('observations', 'recollect.bytes_of(ROW(r.*)::recollect.observations)', true),
            ('relations', 'recollect.bytes_of(ROW(r.*)::recollect.relations)', true),
            ('aliases', '0::bigint', false)
        ) AS tables (name, bytes, is_updated)
        JOIN (VALUES
            ('insert', 'NEW TABLE AS added'),
            ('delete', 'OLD TABLE AS gone'),
            ('update', 'NEW TABLE AS added OLD TABLE AS gone')
        ) AS events (name, rows) ON is_updated OR events.name <> 'update'
    LOOP
        added := format(changed, '', made.bytes, made.name, 'added');
        gone := format(changed, '-', made.bytes, made.name, 'gone');
        EXECUTE format('CREATE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql
            SET plan_cache_mode = force_generic_plan AS %L', made.name || '_bytes_' || made.event,
            format(body, CASE made.event WHEN 'insert' THEN added WHEN 'delete' THEN gone
                ELSE concat(added, $union$
            UNION ALL
            $union$, gone) END));
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %I REFERENCING %s FOR EACH STATEMENT EXECUTE FUNCTION %I()',
            'stored_bytes_' || made.event, made.event, made.name, made.rows, made.name || '_bytes_' || made.event);
    END LOOP;
END
$do$;
