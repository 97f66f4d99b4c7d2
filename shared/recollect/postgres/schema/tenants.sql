-- Plans, tenants and their usage; and what a transaction of a tenant asks before it reads or writes.
--
-- Every table of tenants has tenant_id first in its primary key and its foreign keys: rows of different tenants
-- cannot be joined by mistake, and the schema can be distributed by tenant. Each is under row-level security. In its
-- policy, the sub-select makes the tenant a constant of the plan; nullif survives a pooled connection, where a
-- setting that was once set reads as an empty string.
--
-- What must happen before a tenant is known is done by a closed list of functions that run as their owner (SECURITY
-- DEFINER). Each takes and returns no more than its one purpose needs, and each has its attack test.

-- Plans: what a tenant may have and ask for. Null is no limit. nodes_per_graph: entities, facts and placeholders.
-- stored_bytes: of text and rows, history included. embeddings_per_day: passages that are given vectors from one
-- midnight UTC to the next. concurrent_calls: under way at the same time.
CREATE TABLE plans (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    graphs bigint CHECK (graphs > 0),
    nodes_per_graph bigint CHECK (nodes_per_graph > 0),
    observations bigint CHECK (observations > 0),
    stored_bytes bigint CHECK (stored_bytes > 0),
    embeddings_per_day bigint CHECK (embeddings_per_day > 0),
    requests_per_minute bigint CHECK (requests_per_minute > 0),
    key_requests_per_minute bigint CHECK (key_requests_per_minute > 0),
    concurrent_calls bigint CHECK (concurrent_calls > 0)
);

ALTER TABLE plans ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON plans TO recollect_operator USING (true);
GRANT SELECT ON plans TO recollect_app;
GRANT SELECT, INSERT, UPDATE ON plans TO recollect_operator;

INSERT INTO plans (
    name, graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day, requests_per_minute,
    key_requests_per_minute, concurrent_calls
)
VALUES
    ('unlimited', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    ('free', 10, 10000, 100000, 500000000, 50000, 600, 300, 10),
    ('team', 100, 100000, 2000000, 10000000000, 500000, 3000, 1500, 30),
    ('business', 1000, 1000000, 20000000, 100000000000, 5000000, 12000, 6000, 100);

-- The organisations that are served. place, moving, held_until, switch_secret and departed_to are about moves between
-- cells.
CREATE TABLE tenants (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    plan text NOT NULL DEFAULT 'unlimited' REFERENCES plans (name),
    -- Days; null: as the deployment has it (RECOLLECT_RETENTION_DAYS).
    retention_days double precision
        CHECK (retention_days >= 1 AND retention_days <= 3650),
    -- A tenant that is suspended read-only: its credentials hold, and what they would write is refused.
    read_only boolean NOT NULL DEFAULT false,
    -- Until when a tenant that was deleted can be restored; null: it was not deleted.
    erase_at timestamptz,
    -- here: it is served. leaving: it is read here, and writes are refused until it has moved. arriving, departed:
    -- its rows are being copied here, or are left of before: it is served elsewhere, and nothing finds it here.
    place text NOT NULL DEFAULT 'here',
    -- Whether another cell has rows of the tenant too, or may: from before the first is copied until the last of
    -- them, here or there, is gone. Such a tenant is not deleted: a receipt would say that all of it went.
    moving boolean NOT NULL DEFAULT false,
    -- Until when writes of a tenant that is leaving are refused; null: until somebody says otherwise. Whoever moves
    -- it may be gone by then: the first write after that moment has it be here again, so that what was written and
    -- what a move may still do are decided by this one row, and not by anybody's clock.
    held_until timestamptz,
    -- In the target, while the tenant arrives: what lets it be here. In the source, once it has departed: the same,
    -- and where to.
    switch_secret uuid,
    departed_to text,
    -- time_zone: an IANA name, by which days and times without an offset are meant; null: that of the tenant, or else
    -- UTC.
    time_zone text,
    CONSTRAINT tenants_place CHECK (place IN ('here', 'leaving', 'arriving', 'departed'))
);
CREATE INDEX tenants_to_erase ON tenants (erase_at) WHERE erase_at IS NOT NULL;

-- A tenant sees the plan that it has. Which others there are, and what is in them, is the operator's.
CREATE POLICY own_plan ON plans
    USING (name = (SELECT t.plan FROM tenants t
        WHERE t.id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)));

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;

-- The role of the operator API sees every tenant and plan, and nothing that a tenant stored. What it makes within a
-- tenant, a log entry and the first credentials, it makes as any transaction does: with that tenant set.
CREATE POLICY of_operators ON tenants TO recollect_operator USING (true);
CREATE POLICY tenant_isolation ON tenants
    USING (id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT ON tenants TO recollect_app;
GRANT SELECT ON tenants TO recollect_operator;
GRANT UPDATE (name, retention_days, time_zone) ON tenants TO recollect_app;
GRANT INSERT (id, slug, name, plan) ON tenants TO recollect_operator;
GRANT UPDATE (status, plan, read_only, erase_at) ON tenants TO recollect_operator;

-- Usage: how often each tenant called what, by the hour (UTC). Gateways add to it in batches, workers with what they
-- did.
-- kind: a tool, a resource, a route of the management API, or work of the worker. name: a word of the code, never a
-- tenant's. errors: calls that were answered by an error, or not at all. passages: given their vectors.
-- bytes_received: of requests. durations: the calls that lie in each of 16 ranges (DURATION_BOUNDS of the code).
CREATE TABLE usage_hourly (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    hour timestamptz NOT NULL CHECK (mod(extract(epoch FROM hour), 3600) = 0),
    kind text NOT NULL CHECK (kind IN ('tool', 'resource', 'route', 'work')),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    calls bigint NOT NULL DEFAULT 0,
    errors bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    bytes_received bigint NOT NULL DEFAULT 0,
    durations bigint[] NOT NULL DEFAULT '{}' CHECK (cardinality(durations) <= 16),
    PRIMARY KEY (tenant_id, hour, kind, name)
) WITH (
    fillfactor = 50
);

ALTER TABLE usage_hourly ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON usage_hourly
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_hourly TO recollect_app;

-- The end of a transaction that writes takes this lock with others, and a suspension takes it alone: once a
-- suspension has committed, nothing commits that began before it. Held for the moment between this and COMMIT.
CREATE FUNCTION lock_writes(tenant uuid, alone boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF alone THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('recollect.writes ' || tenant::text, 0));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
END $$;

-- Raise RC001 where the tenant of this transaction is read-only, RC002 where it is suspended, RC003 where it is
-- moving to another cell, or has: asked when a transaction that writes begins, and again (ending) as the last thing
-- before it commits, where it has written anything. A hold that is over (held_until) holds nothing up. Each write
-- asks twice: so its one statement is planned once a session, and by the key, however small the table was then.
CREATE FUNCTION require_writable(ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
    found record;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
    SELECT t.status, t.read_only, t.place = 'here' AS is_here, t.place = 'leaving' AND t.held_until <= clock_timestamp() AS is_over
    INTO found FROM tenants t WHERE t.id = tenant;
    IF NOT found.is_here AND NOT (coalesce(found.is_over, false) AND (NOT ending OR end_hold(tenant))) THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    ELSIF found.status = 'suspended' THEN
        RAISE EXCEPTION 'the tenant is suspended' USING ERRCODE = 'RC002';
    ELSIF found.read_only THEN
        RAISE EXCEPTION 'the tenant is read-only' USING ERRCODE = 'RC001';
    END IF;
END $$;

-- Raise RC003 where the tenant of this transaction is not here, or is leaving and this `writes`: asked, where there
-- are several cells, when a transaction begins, and (ending) as the last thing before it commits, where it has
-- written anything. A tenant whose hold is over is here. The lock is the one of require_writable: once a switch that
-- took it alone has committed, nothing commits that began before.
CREATE FUNCTION require_here(writes boolean, ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
    found record;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
    SELECT t.place, t.held_until <= clock_timestamp() AS is_over INTO found FROM tenants t WHERE t.id = tenant;
    IF found.place = 'here' OR (found.place = 'leaving' AND NOT writes) THEN
        RETURN;
    ELSIF found.place = 'leaving' AND found.is_over AND (NOT ending OR end_hold(tenant)) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'the tenant is not here' USING ERRCODE = 'RC003';
END $$;

-- Raise RC003 where this tenant is not served here: asked where there are several cells, of the tenant to which a
-- session is confined, when a transaction of its person begins.
CREATE FUNCTION require_served(tenant uuid)
RETURNS void
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp
AS $$
BEGIN
    PERFORM 1 FROM find_places(ARRAY[tenant], '{}', '{}') f WHERE f.place IN ('here', 'leaving');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the tenant is not here' USING ERRCODE = 'RC003';
    END IF;
END $$;

-- A gateway that knows a graph from an earlier call has the database confirm that in the round trip that begins the
-- next one.
-- Raise RC004 unless the tenant has this graph just as it was when it had this fingerprint (`hash_record_extended` of
-- its row): with that name, and configured so.
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

-- The tenants that are served here: what looks for tenants before one is known looks here.
CREATE VIEW tenants_here AS
    SELECT t.id, t.slug, t.name, t.status, t.read_only, t.plan, t.retention_days, t.erase_at
    FROM tenants t WHERE t.place IN ('here', 'leaving');

-- Those of them that are not about to leave, or whose hold is over: what looks for work of tenants looks here, since it
-- would write.
CREATE VIEW tenants_staying AS
    SELECT t.id, t.slug, t.name, t.status, t.read_only, t.plan, t.retention_days, t.erase_at
    FROM tenants t WHERE t.place = 'here' OR (t.place = 'leaving' AND t.held_until <= statement_timestamp());
