-- Erasing a tenant, and forgetting what the planner knows of erased rows.

-- Take new statistics of every table that holds what people wrote. The planner's histograms and most common values
-- are such text, and hold a row that was deleted until the table is analysed again, which autovacuum may not do for
-- weeks. Only the owner may; the application says when: at the end of an erasure, in its transaction. `among` (null:
-- all) leaves out tables of these, and reaches no other; it tells of no tenant. A sample is bounded (30,000 rows),
-- whatever a table has. Answers the tables of which it could not: another was just analysing or vacuuming them; or,
-- before PostgreSQL 18, which cannot clear what the server knows, they are empty, which ANALYZE passes over, and the
-- server knows something of them.
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
            IF NOT (can_clear OR has_rows) AND EXISTS (
                SELECT FROM pg_stats s
                WHERE s.schemaname = 'recollect' AND (s.tablename = held OR s.tablename IN (
                    SELECT i.indexname FROM pg_indexes i WHERE i.schemaname = 'recollect' AND i.tablename = held)))
            THEN
                left_out := left_out || held;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            left_out := left_out || held;
        END;
    END LOOP;
    RETURN left_out;
END
$$;

-- The tables that hold rows of tenants, those that refer to others before these: found in the catalogue, so that none
-- is ever forgotten.
CREATE FUNCTION tables_of_tenants()
RETURNS text[]
LANGUAGE sql STABLE SET search_path = recollect, pg_temp
AS $$
    WITH RECURSIVE theirs AS (
        SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ), reach AS (
        SELECT oid, 0 AS depth FROM theirs
        UNION
        SELECT f.confrelid, r.depth + 1 FROM reach r
        JOIN pg_catalog.pg_constraint f ON f.conrelid = r.oid AND f.contype = 'f' AND f.confrelid <> f.conrelid
        WHERE f.confrelid IN (SELECT oid FROM theirs) AND r.depth < 30
    ), placed AS (
        SELECT oid, max(depth) AS depth FROM reach GROUP BY oid
    )
    SELECT array_agg(c.relname::text ORDER BY p.depth, c.relname)
    FROM placed p JOIN pg_catalog.pg_class c ON c.oid = p.oid
$$;

-- How many rows of each table are a tenant's.
CREATE FUNCTION count_of_tenant(tenant uuid)
RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    theirs text;
    found bigint;
    counts jsonb := jsonb_build_object('tenants', (SELECT count(*) FROM tenants t WHERE t.id = tenant));
BEGIN
    FOREACH theirs IN ARRAY tables_of_tenants() LOOP
        EXECUTE format('SELECT count(*) FROM %I WHERE tenant_id = $1', theirs) INTO found USING tenant;
        counts := counts || jsonb_build_object(theirs, found);
    END LOOP;
    RETURN counts;
END $$;

-- Tenants whose grace is over, those first that wait the longest; ids only.
CREATE FUNCTION tenants_to_erase()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t WHERE t.erase_at <= statement_timestamp() ORDER BY t.erase_at, t.id
$$;

-- That an owner asked for the deletion of their organisation. It does nothing for a week, in which any owner takes it
-- back (ADR 3). The application may store that somebody asked, for the tenant of its transaction, and delete it. It
-- cannot say when that was, nor when the week is over, nor change either.
CREATE TABLE deletion_requests (
    tenant_id uuid PRIMARY KEY REFERENCES tenants (id),
    requested_by uuid NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    due_at timestamptz NOT NULL DEFAULT statement_timestamp() + interval '168 hours',
    CHECK (due_at >= requested_at + interval '168 hours')
);
CREATE INDEX deletion_requests_due ON deletion_requests (due_at);

ALTER TABLE deletion_requests ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON deletion_requests
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, DELETE ON deletion_requests TO recollect_app;
GRANT INSERT (tenant_id, requested_by) ON deletion_requests TO recollect_app;
-- Operators see which tenants are to be deleted, and when.
CREATE POLICY of_operators ON deletion_requests FOR SELECT TO recollect_operator USING (true);
GRANT SELECT (tenant_id, due_at) ON deletion_requests TO recollect_operator;

-- Write into the log of operators that a deletion was asked for, or taken back: the application can neither leave that
-- out nor change it. Nor can it fill the log: beyond ten entries of a tenant in a day, nobody may ask until the next.
CREATE FUNCTION write_deletion_request_to_operator_log()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    request deletion_requests := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
    about text := (SELECT 'tenant:' || t.slug FROM tenants t WHERE t.id = request.tenant_id);
BEGIN
    IF TG_OP = 'INSERT' AND (
        SELECT count(*) FROM operator_log l
        WHERE l.subject = about AND l.at > statement_timestamp() - interval '1 day'
            AND l.action IN ('tenant.deletion_requested', 'tenant.deletion_taken_back')
    ) >= 10 THEN
        RAISE EXCEPTION 'the deletion was asked for too often' USING ERRCODE = 'program_limit_exceeded';
    END IF;
    INSERT INTO operator_log (actor, action, subject, details)
    VALUES ('service', CASE WHEN TG_OP = 'INSERT' THEN 'tenant.deletion_requested' ELSE 'tenant.deletion_taken_back' END,
        about, jsonb_build_object('requested_by', 'person:' || request.requested_by, 'due_at', request.due_at));
    RETURN NULL;
END $$;

CREATE TRIGGER write_operator_log AFTER INSERT OR DELETE ON deletion_requests
    FOR EACH ROW WHEN (current_user = 'recollect_app') EXECUTE FUNCTION write_deletion_request_to_operator_log();

-- Take back that an owner asked for the deletion of a tenant: what operators do, who read no table of tenants. Returns
-- who had asked.
CREATE FUNCTION withdraw_deletion_request(tenant uuid)
RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM deletion_requests r WHERE r.tenant_id = tenant RETURNING r.requested_by
$$;

-- Tenants whose owners asked for their deletion a week ago, and did not take it back.
CREATE FUNCTION tenants_with_due_deletion()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM deletion_requests r JOIN tenants_staying t ON t.id = r.tenant_id
    WHERE r.due_at <= statement_timestamp() AND t.erase_at IS NULL ORDER BY r.due_at, t.id
$$;

-- Delete a tenant whose owner asked for that a week ago, as an operator does: it is suspended completely, and is erased
-- in 30 days, until when an operator restores it. Returns when that is; null where nobody asked, the week is not over,
-- or the tenant is deleted already or on its way between cells. entry: the id of the entry in the audit log.
CREATE FUNCTION delete_requested_tenant(tenant uuid, entry uuid)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    old tenants;
    request deletion_requests;
    entry_details jsonb;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM deletion_requests r WHERE r.tenant_id = tenant AND r.due_at <= statement_timestamp()) THEN
        RETURN NULL;
    END IF;
    PERFORM lock_writes(tenant, true);
    SELECT * INTO old FROM tenants t WHERE t.id = tenant AND t.place = 'here' AND NOT t.moving AND t.erase_at IS NULL
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM deletion_requests r WHERE r.tenant_id = tenant AND r.due_at <= clock_timestamp() RETURNING * INTO request;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO tenant_deletions (id, deleted_by, status_before, read_only_before)
    VALUES (tenant, 'person:' || request.requested_by, old.status, old.read_only);
    UPDATE tenants t SET status = 'suspended', erase_at = statement_timestamp() + interval '720 hours' WHERE t.id = tenant
    RETURNING * INTO STRICT old;
    entry_details := jsonb_build_object('erase_at', to_char(old.erase_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'requested_by', 'person:' || request.requested_by);
    INSERT INTO audit_log (tenant_id, id, actor, action, objects, details)
    VALUES (tenant, entry, 'service', 'tenant.deleted', ARRAY['tenant:' || tenant], entry_details);
    INSERT INTO operator_log (actor, action, subject, details)
    VALUES ('service', 'tenant.deleted', 'tenant:' || old.slug, entry_details);
    RETURN old.erase_at;
END $$;

-- One step of the erasure of a tenant whose grace is over: delete so many rows at most, and add to what was deleted
-- before. Where none is left, the tenant goes as well, and its receipt is written. Tells 'more', 'erased', or 'busy'
-- where another step is under way or somebody is at work in the tenant; null where there is no such tenant, or it may
-- not be erased yet.
CREATE FUNCTION erase_tenant_step(tenant uuid, most bigint)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    deletion tenant_deletions;
    old tenants;
    theirs text;
    gone bigint;
    room bigint := most;
    receipt_id uuid := gen_random_uuid();
    receipt text;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM tenants t WHERE t.id = tenant AND t.erase_at <= statement_timestamp()) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO old FROM tenants t WHERE t.id = tenant AND t.erase_at <= statement_timestamp() FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'busy';
    END IF;
    UPDATE tenant_deletions d SET begun_at = coalesce(d.begun_at, clock_timestamp()) WHERE d.id = tenant
    RETURNING * INTO STRICT deletion;
    PERFORM set_config('recollect.audit_removal', 'on', true);
    -- What refers to a row that is deleted is looked for by a plan that is made once: a fifth of the time (measured).
    PERFORM set_config('plan_cache_mode', 'auto', true);
    FOREACH theirs IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'DELETE FROM %1$I WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
            SELECT ctid FROM %1$I WHERE tenant_id = $1 LIMIT $2))', theirs) USING tenant, room;
        GET DIAGNOSTICS gone = ROW_COUNT;
        room := room - gone;
        IF gone > 0 OR NOT deletion.counts ? theirs THEN
            deletion.counts := deletion.counts || jsonb_build_object(
                theirs, coalesce((deletion.counts ->> theirs)::bigint, 0) + gone);
        END IF;
        EXIT WHEN room <= 0;
    END LOOP;
    PERFORM set_config('recollect.audit_removal', '', true);
    IF room <= 0 THEN
        UPDATE tenant_deletions d SET counts = deletion.counts WHERE d.id = tenant;
        RETURN 'more';
    END IF;
    DELETE FROM tenant_deletions d WHERE d.id = tenant;
    DELETE FROM tenants t WHERE t.id = tenant;
    receipt := jsonb_build_object('id', receipt_id, 'tenant', jsonb_build_object('id', tenant, 'slug', old.slug),
        'deleted_at', deletion.deleted_at, 'deleted_by', deletion.deleted_by, 'begun_at', deletion.begun_at,
        'erased_at', clock_timestamp(), 'rows', deletion.counts || '{"tenants": 1}')::text;
    INSERT INTO erasure_receipts (id, erased_at, tenant, slug, content, sha256)
    VALUES (receipt_id, (receipt::jsonb ->> 'erased_at')::timestamptz, tenant, old.slug, receipt,
        encode(sha256(convert_to(receipt, 'UTF8')), 'hex'));
    INSERT INTO operator_log (actor, action, subject, details)
    VALUES ('service', 'tenant.erased', 'tenant:' || old.slug,
        jsonb_build_object('receipt', receipt_id, 'deleted_by', deletion.deleted_by));
    RETURN 'erased';
END $$;

-- All that a version says in words, of nodes and of observations: what an erasure looks for names in.
CREATE FUNCTION words_of(version node_versions) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT concat_ws(E'\n', version.name, version.kind, version.content, version.summary, version.source, version.thread,
        array_to_string(version.tags, E'\n'), version.metadata::text, version.reason)
$$;

CREATE FUNCTION words_of(statement observations) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT concat_ws(E'\n', statement.content, statement.thread, statement.kind, statement.source,
        array_to_string(statement.tags, E'\n'), statement.metadata::text, statement.reason)
$$;
