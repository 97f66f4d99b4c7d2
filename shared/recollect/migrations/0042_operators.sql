-- Operators: the role of the operator API, its keys and its log; tenants that are deleted with grace, and the receipts of
-- those that were erased.

-- Until when a tenant that was deleted can be restored; null: it was not deleted.
ALTER TABLE tenants ADD COLUMN erase_at timestamptz;
-- squawk-ignore require-concurrent-index-creation -- a row for each tenant: made in a moment
CREATE INDEX tenants_to_erase ON tenants (erase_at) WHERE erase_at IS NOT NULL;

-- A tenant, by its id, that was deleted, and what has been erased of it: counts of rows by table.
CREATE TABLE tenant_deletions (
    id uuid PRIMARY KEY REFERENCES tenants (id),
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_by text NOT NULL CHECK (length(deleted_by) BETWEEN 1 AND 200),
    status_before text NOT NULL,
    read_only_before boolean NOT NULL,
    begun_at timestamptz,
    counts jsonb NOT NULL DEFAULT '{}'
);

-- What is left of a tenant that was erased: which it was, when and by whom, and how many rows of each table went. `content`
-- is JSON as it was written, and sha256 that of these bytes in hexadecimal digits.
CREATE TABLE erasure_receipts (
    id uuid PRIMARY KEY,
    number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    erased_at timestamptz NOT NULL,
    tenant uuid NOT NULL UNIQUE,
    slug text NOT NULL,
    content text NOT NULL,
    sha256 text NOT NULL CHECK (length(sha256) = 64)
);

CREATE TABLE operator_keys (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    hash bytea NOT NULL UNIQUE,
    hint text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    last_used_at timestamptz
);

-- What operators did. subject: what it was done to, as `kind:name`.
CREATE TABLE operator_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    action text NOT NULL CHECK (length(action) BETWEEN 1 AND 64),
    subject text NOT NULL CHECK (length(subject) BETWEEN 1 AND 300),
    address text CHECK (length(address) <= 100),
    trace_id text CHECK (length(trace_id) <= 32),
    details jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(details::text) <= 4000)
);
CREATE INDEX operator_log_subject ON operator_log (subject, id);

CREATE FUNCTION keep_operator_record()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the log and the receipts of operators are append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON operator_log FOR EACH ROW EXECUTE FUNCTION keep_operator_record();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON erasure_receipts
    FOR EACH ROW EXECUTE FUNCTION keep_operator_record();

-- The role of the operator API sees every tenant and plan, and nothing that a tenant stored. What it makes within a tenant,
-- a log entry and the first credentials, it makes as any transaction does: with that tenant set.
CREATE POLICY of_operators ON tenants TO recollect_operator USING (true);
ALTER POLICY of_a_member ON audit_log TO recollect_app; -- It asks who is a member, which operators may not see.
CREATE POLICY of_operators ON plans TO recollect_operator USING (true);
DO $$
DECLARE operators_table text;
BEGIN
    FOREACH operators_table IN ARRAY ARRAY['tenant_deletions', 'erasure_receipts', 'operator_keys', 'operator_log']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', operators_table);
        EXECUTE format('CREATE POLICY of_operators ON %I TO recollect_operator USING (true)', operators_table);
    END LOOP;
END $$;
GRANT USAGE ON SCHEMA recollect TO recollect_operator;
GRANT SELECT ON tenants TO recollect_operator;
GRANT INSERT (id, slug, name, plan) ON tenants TO recollect_operator;
GRANT UPDATE (status, read_only, plan, erase_at) ON tenants TO recollect_operator;
GRANT SELECT, INSERT, UPDATE ON plans TO recollect_operator;
GRANT SELECT, INSERT, DELETE ON tenant_deletions TO recollect_operator;
GRANT SELECT ON erasure_receipts TO recollect_operator;
GRANT SELECT, INSERT ON operator_log TO recollect_operator;
GRANT INSERT ON graphs, graph_heads, graph_indexes, audit_log, api_keys, invitations TO recollect_operator;
GRANT SELECT (tenant_id, id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by, expires_at,
    revoked_at, last_used_at, toolsets, requests_per_minute) ON api_keys TO recollect_operator;
GRANT SELECT (tenant_id, id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at)
    ON invitations TO recollect_operator;
GRANT UPDATE (revoked_at) ON invitations TO recollect_operator;
GRANT EXECUTE ON FUNCTION lock_writes(uuid, boolean) TO recollect_operator;

-- The operator's key with this keyed hash; it was used now, to the minute.
CREATE FUNCTION find_operator_key(key_hash bytea)
RETURNS TABLE (id uuid, name text, expires_at timestamptz, revoked_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    UPDATE operator_keys SET last_used_at = statement_timestamp()
    WHERE hash = key_hash AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute');
    SELECT k.id, k.name, k.expires_at, k.revoked_at FROM operator_keys k WHERE k.hash = key_hash
$$;

-- The tables that hold rows of tenants, those that refer to others before these: found in the catalogue, so that none is
-- ever forgotten.
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
    SELECT t.id FROM tenants t WHERE t.erase_at <= statement_timestamp() ORDER BY t.erase_at, t.id
$$;

-- One step of the erasure of a tenant whose grace is over: delete so many rows at most, and add to what was deleted before.
-- Where none is left, the tenant goes as well, and its receipt is written. Tells 'more', 'erased', or 'busy' where another
-- step is under way or somebody is at work in the tenant; null where there is no such tenant, or it may not be erased yet.
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

REVOKE ALL ON FUNCTION keep_operator_record(), find_operator_key(bytea), tables_of_tenants(), count_of_tenant(uuid),
    tenants_to_erase(), erase_tenant_step(uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_operator_key(bytea), count_of_tenant(uuid), erase_tenant_step(uuid, bigint),
    forget_statistics(text[]) TO recollect_operator;
GRANT EXECUTE ON FUNCTION tenants_to_erase(), erase_tenant_step(uuid, bigint) TO recollect_app;
