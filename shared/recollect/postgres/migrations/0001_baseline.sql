-- The whole schema, as it was when the first release was made. Made from the files of recollect/postgres/schema by
-- `make baseline`: read those, they say what the schema is now.

-- Names for conditions that queries write in a form of their own because of the planner, or that they repeat. ADR 0032 says
-- why, and which idioms have no function (docs/adr/0032-queries-do-not-depend-on-statistics.md).
--
-- PostgreSQL puts the body in the place of the call while it plans a query: a plan shows no trace of the name, and indexes
-- serve the condition as if it were written out. For that, each function is one expression, runs with its caller's rights,
-- has no settings (SET), and may be executed by whoever plans the query. An argument that occurs twice in the body must be
-- cheap: a column, a parameter, or a simple function of one. Indexes and constraints do not use these functions: what is
-- stored must not depend on them.

-- Whether a key is this one, as a range of one key. With ORDER BY of the same key and LIMIT 1 or OFFSET 0 it is looked up
-- in the index that has this order, and in no other.
CREATE FUNCTION same_key(key uuid, wanted uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN key BETWEEN wanted AND wanted;

CREATE FUNCTION same_key(key text, wanted text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN key BETWEEN wanted AND wanted;

CREATE FUNCTION same_key(key bigint, wanted bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN key BETWEEN wanted AND wanted;

-- The condition, to be checked on rows that another condition finds: no index serves it.
CREATE FUNCTION as_filter(condition boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN condition IS TRUE;

-- Whether a row that was removed in this revision is live, that is, was not removed: `removed IS NULL` in a form that
-- matches no partial index but those that are defined by this form. Where another index of live rows is to serve, write
-- `removed_revision IS NULL`.
CREATE FUNCTION is_live(removed bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(removed, 0) = 0;

-- Whether a row that was removed, or superseded, in this revision was still live at that one.
CREATE FUNCTION is_live_at(removed bigint, at_revision bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN removed IS NULL OR removed > at_revision;

-- Whether what expires then has not yet expired; null: it never does.
CREATE FUNCTION is_current(expires timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN expires IS NULL OR expires > statement_timestamp();

-- The same at a time.
CREATE FUNCTION is_current_at(expires timestamptz, at_time timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN expires IS NULL OR expires > at_time;

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

-- Graphs: their settings, counters, search indexes and the log of changes.
--
-- Nothing is overwritten: rows of a graph carry the revision that added them and the one that removed them.

CREATE TABLE graphs (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (name ~ '^[A-Za-z0-9_@-]{1,128}$'),
    conflict_policy text NOT NULL DEFAULT 'lww' CHECK (conflict_policy IN ('lww', 'manual')),
    kind_whitelist text[],
    metadata jsonb NOT NULL DEFAULT '{}',
    limits jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    -- The oldest revision that can still be read, and when it was written. 0: all of them.
    compacted_revision bigint NOT NULL DEFAULT 0,
    compacted_at timestamptz,
    -- When the worker looks next whether something of a graph is beyond the retention: once a day, and not with every
    -- write, so that nothing is paid for it when something is taken away, and a retention that is changed holds a day
    -- later. Graphs are spread over the day.
    compaction_check_at timestamptz NOT NULL
        DEFAULT clock_timestamp() + interval '1 day' * random(),
    time_zone text,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
);
CREATE INDEX graphs_to_check ON graphs (tenant_id, compaction_check_at);

ALTER TABLE graphs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON graphs
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON graphs TO recollect_app;
GRANT INSERT ON graphs TO recollect_operator;

-- One narrow row a graph: the write lock, the newest revision and its time, and exact counts of what is live.
CREATE TABLE graph_heads (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    entities bigint NOT NULL DEFAULT 0,
    facts bigint NOT NULL DEFAULT 0,
    placeholders bigint NOT NULL DEFAULT 0,
    observations bigint NOT NULL DEFAULT 0,
    relations bigint NOT NULL DEFAULT 0,
    -- stored_bytes: of the text of all versions of its nodes, observations and relations, history included, in UTF-8.
    -- Changed by triggers alone.
    stored_bytes bigint NOT NULL DEFAULT 0,
    -- When a graph was last written, give or take a minute. An index on `at` would take part in every write of a
    -- graph; this column changes once a minute at most, so that the other updates of the row stay heap-only.
    written_around timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- row_bytes: of the rows of the graph besides their text, changed by triggers alone.
    row_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    fillfactor = 50
);
CREATE INDEX graph_heads_written ON graph_heads (tenant_id, written_around);

ALTER TABLE graph_heads ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON graph_heads
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON graph_heads TO recollect_app;
GRANT INSERT ON graph_heads TO recollect_operator;

-- Raised by the worker whenever vectors, windows or term frequencies changed: part of every search cache key.
CREATE TABLE graph_indexes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    index_epoch bigint NOT NULL DEFAULT 0,
    -- passages_counted: how many live passages the term counts are of, when the graph had memories_counted memories.
    -- vector_model, vector_dimensions: of the graph's vector index, where it has one.
    passages_counted bigint NOT NULL DEFAULT 0,
    memories_counted bigint NOT NULL DEFAULT 0,
    vector_model text,
    vector_dimensions integer,
    -- model: whose vectors a graph is searched by, and what its new passages are embedded by, while an embedder of
    -- that name is at hand; null until its first passage is embedded.
    model text,
    -- Since when a graph is served by its model and may have vectors of others; null: it has none.
    others_since timestamptz,
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
) WITH (
    fillfactor = 50
);

ALTER TABLE graph_indexes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON graph_indexes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON graph_indexes TO recollect_app;
GRANT INSERT ON graph_indexes TO recollect_operator;

-- The index_epoch after this one, which the graph never had before: microseconds since 1970, and at least one more than
-- the last. Commits of workers do not wait for the disk, so that a crash may lose some: a plain counter would then reach
-- the same number again with other rows.
CREATE FUNCTION next_index_epoch(last_epoch bigint)
RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(last_epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- The ordered log of a graph: which operation, by whom, on what ids. Never holds stored text or names.
CREATE TABLE changes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    revision bigint NOT NULL,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    operation text NOT NULL,
    ids uuid[] NOT NULL,
    counts jsonb NOT NULL,
    PRIMARY KEY (tenant_id, graph_id, revision),
    -- A graph's log and counters go with it, and only with it: nobody but their owner may delete a change.
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0, -- see nodes.sql
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX changes_at ON changes (tenant_id, graph_id, at);

ALTER TABLE changes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON changes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
-- The log is never rewritten by gateway or worker.
GRANT SELECT, INSERT ON changes TO recollect_app;

-- Note when a graph was written, give or take a minute. For most writes, the trigger's condition alone is evaluated.
CREATE FUNCTION note_written_around()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.written_around := NEW.at;
    RETURN NEW;
END $$;

CREATE TRIGGER written_around BEFORE UPDATE ON graph_heads FOR EACH ROW
    WHEN (NEW.at > OLD.written_around + interval '1 minute')
    EXECUTE FUNCTION note_written_around();

-- API keys.

CREATE TABLE api_keys (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('agent', 'admin')),
    hash bytea NOT NULL UNIQUE,
    hint text NOT NULL,
    scopes text[] NOT NULL,
    graph_ids uuid[],
    default_graph_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- A key may be confined to some toolsets; null is all.
    toolsets text[],
    -- A key may have a lower limit than the plan gives to each.
    requests_per_minute bigint CHECK (requests_per_minute > 0),
    -- Of which secret the hash is (a fingerprint, which tells nothing of it); null where that was not noted. The
    -- secret is replaced while both hold: each key is hashed anew when it is used.
    hashed_with bytea,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, default_graph_id) REFERENCES graphs (tenant_id, id)
        ON DELETE SET NULL (default_graph_id)
);

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON api_keys
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
-- Gateway and worker delete no key. One that is rotated ends after an overlap: its end may be brought forward.
GRANT SELECT, INSERT ON api_keys TO recollect_app;
GRANT INSERT ON api_keys TO recollect_operator;
GRANT UPDATE (hash, expires_at, revoked_at, last_used_at, hashed_with) ON api_keys TO recollect_app;
GRANT SELECT (tenant_id, id, name, kind, hint, scopes, graph_ids, default_graph_id, created_at, created_by,
    expires_at, revoked_at, last_used_at, toolsets, requests_per_minute) ON api_keys TO recollect_operator;

-- A key by its keyed hash, with its tenant; whether it still holds is for the caller to judge.
-- Every call asks it: so its statement is planned once a session, and by the key.
CREATE FUNCTION find_api_key(key_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, kind text, scopes text[], graph_ids uuid[],
    default_graph text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, toolsets text[],
    plan text, requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
    SELECT k.tenant_id, t.slug, t.status, k.id, k.kind, k.scopes, k.graph_ids, g.name, k.expires_at, k.revoked_at,
        k.last_used_at, k.toolsets, p.name, p.requests_per_minute,
        least(k.requests_per_minute, p.key_requests_per_minute), p.concurrent_calls
    FROM api_keys k
    JOIN tenants_here t ON t.id = k.tenant_id
    JOIN plans p ON p.name = t.plan
    LEFT JOIN graphs g ON g.tenant_id = k.tenant_id AND g.id = k.default_graph_id
    WHERE k.hash = key_hash
$$;

-- Keys that hold no more go when a tenant has too many: for a new one, the oldest. The application may not delete
-- them otherwise.
-- Delete the key of the transaction's tenant that has been void for the longest time; whether there was one.
CREATE FUNCTION forget_void_key()
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM api_keys k WHERE k.tenant_id = tenant AND k.id = (
        SELECT o.id FROM api_keys o
        WHERE o.tenant_id = tenant AND least(o.revoked_at, o.expires_at) <= clock_timestamp()
        ORDER BY least(o.revoked_at, o.expires_at), o.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    );
    RETURN FOUND;
END $$;

-- Identity providers of tenants, sign-ins under way with them, trusted issuers of tokens, and e-mail domains.
--
-- A provider speaks for its own tenant and for no other. Whom it brings is a person of that tenant alone, or one with
-- an account of their own who connected it; a session that it began is good for that tenant only.

-- client_secret is encrypted under a key derived from RECOLLECT_KEY_SECRET. The issuer of a provider never changes:
-- what it says of a subject is about the same one for good.
CREATE TABLE identity_providers (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    issuer text NOT NULL CHECK (length(issuer) BETWEEN 1 AND 2000),
    client_id text NOT NULL CHECK (length(client_id) BETWEEN 1 AND 500),
    client_secret bytea NOT NULL,
    algorithm text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    disabled_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, issuer)
);

ALTER TABLE identity_providers ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON identity_providers
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON identity_providers TO recollect_app;
GRANT UPDATE (name, client_id, client_secret, algorithm, disabled_at) ON identity_providers TO recollect_app;

-- A browser that was sent to a provider. hash: of the state that comes back; browser: of the cookie that must come with
-- it. invitation_id and person_id: what it is for, where it is to join or to connect the provider.
CREATE TABLE provider_sign_ins (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    provider_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    browser bytea NOT NULL,
    invitation_id uuid,
    person_id uuid,
    place text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, provider_id) REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE provider_sign_ins ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON provider_sign_ins
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON provider_sign_ins TO recollect_app;

-- Issuers of access tokens that a tenant trusts, beside our own authorization server.
-- rules: what a token may do, by what its claim (`claim`) says: [{"value", "scopes", "graph_ids"}]. The issuer never
-- changes: what it says of a subject is about the same one for good.
CREATE TABLE trusted_issuers (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    issuer text NOT NULL CHECK (length(issuer) BETWEEN 1 AND 2000),
    algorithm text NOT NULL,
    claim text NOT NULL CHECK (length(claim) BETWEEN 1 AND 100),
    rules jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    disabled_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, issuer)
);

ALTER TABLE trusted_issuers ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON trusted_issuers
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON trusted_issuers TO recollect_app;
GRANT UPDATE (name, algorithm, claim, rules, disabled_at) ON trusted_issuers TO recollect_app;

-- Domains of e-mail addresses that tenants claim: whom a tenant's identity provider brings with such an address may
-- join.
-- secret: what the domain's DNS must say; it is no secret once it stands there. verified_at: since when it is this
-- tenant's, checked_at: when the DNS last said so. A domain is verified for one tenant at a time.
CREATE TABLE email_domains (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    domain text NOT NULL CHECK (domain = lower(domain) AND length(domain) BETWEEN 3 AND 253),
    secret text NOT NULL CHECK (length(secret) >= 32),
    role text NOT NULL CHECK (role IN ('member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    verified_at timestamptz,
    checked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, domain)
);
CREATE UNIQUE INDEX email_domains_verified ON email_domains (domain) WHERE verified_at IS NOT NULL;

ALTER TABLE email_domains ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON email_domains
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON email_domains TO recollect_app;
GRANT UPDATE (role, verified_at, checked_at) ON email_domains TO recollect_app;

-- The providers by which people sign in to these tenants, as a page offers them: nobody has signed in yet.
CREATE FUNCTION find_identity_providers(tenant_slugs text[])
RETURNS TABLE (tenant_id uuid, tenant text, id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, i.id, i.name
    FROM identity_providers i JOIN tenants_here t ON t.id = i.tenant_id
    WHERE t.slug = ANY (tenant_slugs) AND t.status = 'active' AND i.disabled_at IS NULL
    ORDER BY t.slug, i.name, i.id
    LIMIT 100
$$;

-- The tenant of the sign-in under way whose state has this keyed hash: what else it says is read as that tenant.
CREATE FUNCTION find_provider_sign_in(state_hash bytea)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.tenant_id FROM provider_sign_ins s JOIN tenants_here t ON t.id = s.tenant_id
    WHERE s.hash = state_hash AND t.status = 'active'
$$;

-- What a tenant trusts an issuer with, and the rates of its plan, for a token that says to be of both; nothing where
-- it is disabled. Whether the token is, and still holds, is for the caller to judge.
CREATE FUNCTION find_trusted_issuer(tenant_slug text, issuer_address text)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, id uuid, issuer text, algorithm text, claim text, rules jsonb,
    plan text, requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, t.status, i.id, i.issuer, i.algorithm, i.claim, i.rules, p.name, p.requests_per_minute,
        p.key_requests_per_minute, p.concurrent_calls
    FROM trusted_issuers i
    JOIN tenants_here t ON t.id = i.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE t.slug = tenant_slug AND i.issuer = issuer_address AND i.disabled_at IS NULL
$$;

-- The addresses of the issuers that a tenant trusts, as the metadata of its resource tells them to clients.
CREATE FUNCTION list_trusted_issuers(tenant_slug text)
RETURNS TABLE (issuer text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.issuer FROM trusted_issuers i JOIN tenants_here t ON t.id = i.tenant_id
    WHERE t.slug = tenant_slug AND t.status = 'active' AND i.disabled_at IS NULL
    ORDER BY i.issuer
    LIMIT 20
$$;

-- Whether a domain may be the tenant's that has just proven it, until this transaction ends: it is no other tenant's,
-- or of one that has not proven it for a week, whose it is no more. Only for a domain that the tenant claims.
CREATE FUNCTION release_email_domain(proven_domain text)
RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('recollect.email_domain:' || proven_domain, 0));
    UPDATE email_domains d SET verified_at = NULL
    WHERE d.domain = proven_domain AND d.checked_at < clock_timestamp() - interval '7 days'
        AND d.tenant_id <> nullif(current_setting('recollect.tenant_id', true), '')::uuid
        AND EXISTS (
            SELECT 1 FROM email_domains o
            WHERE o.domain = proven_domain
                AND o.tenant_id = nullif(current_setting('recollect.tenant_id', true), '')::uuid
        );
    SELECT NOT EXISTS (
        SELECT 1 FROM email_domains d
        WHERE d.domain = proven_domain AND d.verified_at IS NOT NULL
            AND d.tenant_id IS DISTINCT FROM nullif(current_setting('recollect.tenant_id', true), '')::uuid
    )
$$;

-- The tenant whose a domain is, as the sign-in page asks for who types their address.
CREATE FUNCTION find_email_domain(email_domain text)
RETURNS TABLE (tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.slug FROM email_domains d JOIN tenants_here t ON t.id = d.tenant_id
    WHERE d.domain = email_domain AND d.verified_at IS NOT NULL AND t.status = 'active'
$$;

-- People: accounts, sessions, passkeys, password resets, memberships and invitations.

-- A person is of no tenant and may be a member of several. Row-level security shows a person's own rows to who has
-- signed in as that person (`recollect.person_id`), and a tenant's members to the tenant.
CREATE TABLE people (
    id uuid PRIMARY KEY,
    email text NOT NULL CHECK (email = lower(email)),
    name text NOT NULL,
    password_hash text, -- argon2id; none where the person signs in elsewhere
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- A person whom a provider brought is of its tenant (provider_tenant_id) and has no account of their own: no
    -- password, and an address that says nothing outside of it. So nobody's address is taken by what another tenant's
    -- provider says.
    provider_tenant_id uuid,
    -- When a person took another password, which ends the sessions that identity providers began in other cells. One
    -- of those may not be reached then, or be on its way to another cell: whoever moves a tenant ends what began
    -- before.
    password_changed_at timestamptz,
    -- Whether a session began before its person took another password is counted: the clocks of two servers may
    -- differ. Home counts the passwords of a person, and a session that an identity provider began says how many
    -- there had been.
    password_changes bigint NOT NULL DEFAULT 0,
    -- Whether nobody has proven the address. Whoever opens an invitation that was sent by mail reads the mail of its
    -- address. A link that was shown to whoever invited proves nothing: the account that is made by it is of the
    -- inviting tenant alone (provider_tenant_id), as people are whom an identity provider brought, but has a
    -- password. It is in the cell of that tenant. So several tenants may have an account of one address each, and
    -- none of them takes the address.
    unproven boolean NOT NULL DEFAULT false,
    CONSTRAINT people_provider_tenant FOREIGN KEY (provider_tenant_id) REFERENCES tenants (id)
        ON DELETE CASCADE,
    CONSTRAINT people_unproven_are_of_a_tenant CHECK (provider_tenant_id IS NOT NULL OR NOT unproven),
    CONSTRAINT people_of_providers_have_no_password
        CHECK (provider_tenant_id IS NULL OR password_hash IS NULL OR unproven)
);
CREATE UNIQUE INDEX people_email ON people (email) WHERE provider_tenant_id IS NULL;
CREATE INDEX people_of_providers ON people (provider_tenant_id) WHERE provider_tenant_id IS NOT NULL;
CREATE UNIQUE INDEX people_unproven ON people (email, provider_tenant_id) WHERE unproven;

ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_the_own_tenants_provider ON people AS RESTRICTIVE FOR INSERT WITH CHECK (
    provider_tenant_id IS NULL
    OR provider_tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)
);
CREATE POLICY oneself ON people
    USING (id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
-- Hashes of passwords are written and never read again: the functions below look up what was hashed.
GRANT INSERT ON people TO recollect_app;
GRANT SELECT (id, email, name, created_at, provider_tenant_id, password_changes, unproven) ON people TO recollect_app;
GRANT UPDATE (name, password_hash) ON people TO recollect_app;

-- Each sign-in, until it ends or is ended. Only the hash of what the browser holds is kept.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    user_agent text NOT NULL,
    address text NOT NULL,
    -- A session that a provider began is confined to its tenant, and ends with the provider.
    confined_to uuid,
    provider_id uuid,
    -- Null: it began before this was counted, or where all is in one cell; or the person has no account at home.
    password_changes bigint,
    CONSTRAINT sessions_provider FOREIGN KEY (confined_to, provider_id)
        REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE,
    -- A session of an unproven account is confined to its tenant, and no provider began it. Without a provider, no
    -- tenant confines anything but that.
    CONSTRAINT sessions_of_providers_are_confined
        CHECK (provider_id IS NULL OR confined_to IS NOT NULL)
);
CREATE INDEX sessions_person ON sessions (person_id, id);
CREATE INDEX sessions_of_providers ON sessions (confined_to, provider_id) WHERE confined_to IS NOT NULL;

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON sessions
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
-- What is kept of a session, such as the address from which somebody signed in, goes some time after it has ended:
-- with a later sign-in of the same person, as whom alone it is seen. Sessions that a provider began end with the
-- identity by which they began.
GRANT INSERT, DELETE ON sessions TO recollect_app;
GRANT SELECT (id, person_id, created_at, last_used_at, expires_at, revoked_at, user_agent, address, confined_to,
    provider_id) ON sessions TO recollect_app;
GRANT UPDATE (last_used_at, revoked_at) ON sessions TO recollect_app;

-- Links by which people who forgot their password take another one. Only the hash of each is kept.
CREATE TABLE password_resets (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX password_resets_person ON password_resets (person_id, created_at);

ALTER TABLE password_resets ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON password_resets
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
GRANT INSERT, DELETE ON password_resets TO recollect_app;
GRANT SELECT (id, person_id, created_at, expires_at) ON password_resets TO recollect_app;

-- Passkeys, by which people sign in without a password, and the challenges that are signed with them.
CREATE TABLE passkeys (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    credential_id bytea NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key bytea NOT NULL CHECK (octet_length(public_key) BETWEEN 1 AND 4000),
    sign_count bigint NOT NULL CHECK (sign_count >= 0),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id, id);

ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON passkeys
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
GRANT INSERT, DELETE ON passkeys TO recollect_app;
GRANT SELECT (id, person_id, credential_id, sign_count, name, created_at, last_used_at) ON passkeys TO recollect_app;
GRANT UPDATE (sign_count, name, last_used_at) ON passkeys TO recollect_app;

-- What a browser is asked to sign, once. browser: the keyed hash of its cookie. person_id: who adds a passkey by it;
-- none where somebody signs in.
CREATE TABLE passkey_challenges (
    challenge bytea PRIMARY KEY CHECK (octet_length(challenge) BETWEEN 16 AND 64),
    browser bytea NOT NULL CHECK (octet_length(browser) = 32),
    person_id uuid REFERENCES people (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenges_browser ON passkey_challenges (browser, expires_at);
CREATE INDEX passkey_challenges_end ON passkey_challenges (expires_at);
CREATE INDEX passkey_challenges_person ON passkey_challenges (person_id) WHERE person_id IS NOT NULL;

ALTER TABLE passkey_challenges ENABLE ROW LEVEL SECURITY;

-- Who is a member of which tenant.
CREATE TABLE members (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    person_id uuid NOT NULL REFERENCES people (id),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, person_id)
);
CREATE INDEX members_person ON members (person_id, tenant_id);

CREATE POLICY members_of_the_tenant ON people FOR SELECT
    USING (EXISTS (
        SELECT 1 FROM members m
        WHERE m.person_id = people.id
            AND m.tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid)
    ));

-- Who somebody is at a provider: a subject of its issuer, and never an address.
CREATE TABLE provider_identities (
    tenant_id uuid NOT NULL,
    provider_id uuid NOT NULL,
    subject text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    person_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, provider_id, subject),
    UNIQUE (tenant_id, provider_id, person_id),
    FOREIGN KEY (tenant_id, provider_id) REFERENCES identity_providers (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, person_id) REFERENCES members (tenant_id, person_id) ON DELETE CASCADE
);
CREATE INDEX provider_identities_person ON provider_identities (tenant_id, person_id);

ALTER TABLE provider_identities ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON provider_identities
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON provider_identities TO recollect_app;
GRANT UPDATE (last_used_at) ON provider_identities TO recollect_app;

ALTER TABLE members ENABLE ROW LEVEL SECURITY;
CREATE POLICY oneself ON members FOR SELECT
    USING (person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid));
CREATE POLICY tenant_isolation ON members
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON members TO recollect_app;
GRANT UPDATE (role) ON members TO recollect_app;

-- Invitations to join a tenant. Only the hash of each secret is kept.
CREATE TABLE invitations (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    email text NOT NULL CHECK (email = lower(email)),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'reader')),
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz,
    revoked_at timestamptz,
    -- When an invitation was handed to the mail server, or was tried to: a tenant sends so many in a day.
    mailed_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX invitations_mailed ON invitations (tenant_id, mailed_at) WHERE mailed_at IS NOT NULL;
-- When a person's account is deleted, so are the invitations that were sent to their address.
CREATE INDEX invitations_email ON invitations (email);

ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON invitations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT ON invitations TO recollect_app;
GRANT INSERT ON invitations TO recollect_operator;
GRANT UPDATE (accepted_at, revoked_at, mailed_at) ON invitations TO recollect_app;
GRANT SELECT (tenant_id, id, email, role, created_at, created_by, expires_at, accepted_at, revoked_at) ON invitations
    TO recollect_operator;
GRANT UPDATE (revoked_at) ON invitations TO recollect_operator;

-- Who signs in: the person of this address, with what the password is compared with. People whom a provider brought
-- sign in by it alone, and are not found here.
-- What is begun by a password is written only if the person has taken no other since it was compared: a sign-in says
-- by password_changes which one that was.
CREATE FUNCTION find_person(person_email text)
RETURNS TABLE (id uuid, email text, name text, password_hash text, password_changes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash, p.password_changes FROM people p
    WHERE p.email = person_email AND p.provider_tenant_id IS NULL
$$;

-- A session by the hash of its secret; whether it still holds is for the caller to judge. A session that a tenant's
-- provider began is in the cell of that tenant, and holds while the tenant is here.
CREATE FUNCTION find_session(secret_hash bytea)
RETURNS TABLE (
    id uuid, person_id uuid, email text, name text, created_at timestamptz, last_used_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz, confined_to uuid, by_provider boolean
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.id, s.person_id, p.email, p.name, s.created_at, s.last_used_at, s.expires_at,
        coalesce(s.revoked_at, i.disabled_at), coalesce(s.confined_to, p.provider_tenant_id), s.provider_id IS NOT NULL
    FROM sessions s
    JOIN people p ON p.id = s.person_id
    LEFT JOIN identity_providers i ON i.tenant_id = s.confined_to AND i.id = s.provider_id
    WHERE s.hash = secret_hash
        AND (s.confined_to IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = s.confined_to))
$$;

-- The tenants of which a person is a member, with the rates of their plans. Only of the person who has signed in.
CREATE FUNCTION list_memberships()
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, tenant_status text, role text, plan text,
    requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, t.status, m.role, p.name, p.requests_per_minute, p.key_requests_per_minute,
        p.concurrent_calls
    FROM members m
    JOIN tenants_here t ON t.id = m.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
    ORDER BY t.slug
$$;

-- An invitation by the hash of its secret, and its tenant; whether it still holds is for the caller to judge.
CREATE FUNCTION find_invitation(secret_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, tenant_status text, id uuid, email text, role text,
    expires_at timestamptz, accepted_at timestamptz, revoked_at timestamptz, mailed_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT i.tenant_id, t.slug, t.name, t.status, i.id, i.email, i.role, i.expires_at, i.accepted_at, i.revoked_at,
        i.mailed_at
    FROM invitations i JOIN tenants_here t ON t.id = i.tenant_id
    WHERE i.hash = secret_hash
$$;

-- A link by the hash of its secret, and whose it is; whether it still holds is for the caller to judge.
CREATE FUNCTION find_password_reset(secret_hash bytea)
RETURNS TABLE (id uuid, person_id uuid, email text, name text, expires_at timestamptz, confined_to uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT r.id, r.person_id, p.email, p.name, r.expires_at, p.provider_tenant_id
    FROM password_resets r JOIN people p ON p.id = r.person_id
    WHERE r.hash = secret_hash AND (
        p.provider_tenant_id IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = p.provider_tenant_id)
    )
$$;

-- Keep a challenge, of the person who has signed in or of nobody. Those that ended go, and those of the browser
-- beyond its five newest.
CREATE FUNCTION keep_passkey_challenge(new_challenge bytea, of_browser bytea, lifetime interval)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM passkey_challenges c
    WHERE c.challenge IN (
        SELECT o.challenge FROM passkey_challenges o WHERE o.expires_at < clock_timestamp()
        ORDER BY o.expires_at LIMIT 100
        FOR UPDATE SKIP LOCKED
    ) OR c.challenge IN (
        SELECT o.challenge FROM passkey_challenges o WHERE o.browser = of_browser ORDER BY o.expires_at DESC OFFSET 4
    );
    INSERT INTO passkey_challenges (challenge, browser, person_id, expires_at)
    VALUES (
        new_challenge, of_browser, nullif(current_setting('recollect.person_id', true), '')::uuid,
        clock_timestamp() + least(lifetime, interval '10 minutes')
    )
$$;

-- Use a challenge up, whatever comes of it; whether it held, for this browser and the person who has signed in, or
-- nobody.
CREATE FUNCTION take_passkey_challenge(old_challenge bytea, of_browser bytea)
RETURNS TABLE (held boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM passkey_challenges c
    WHERE c.challenge = old_challenge AND c.browser = of_browser
        AND c.person_id IS NOT DISTINCT FROM nullif(current_setting('recollect.person_id', true), '')::uuid
    RETURNING c.expires_at > clock_timestamp()
$$;

-- A passkey by its credential's id, and whose it is: what a sign-in is verified with.
CREATE FUNCTION find_passkey(credential bytea)
RETURNS TABLE (id uuid, person_id uuid, public_key bytea, sign_count bigint, confined_to uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.person_id, k.public_key, k.sign_count, p.provider_tenant_id
    FROM passkeys k JOIN people p ON p.id = k.person_id
    WHERE k.credential_id = credential AND (
        p.provider_tenant_id IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = p.provider_tenant_id)
    )
$$;

-- What the person who has signed in is at providers, in all tenants of which they are a member. `enabled`: whether
-- they can sign in by it.
CREATE FUNCTION list_own_identities(most bigint)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, provider_id uuid, provider_name text, enabled boolean,
    last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, i.id, i.name, i.disabled_at IS NULL AND t.status = 'active', x.last_used_at
    FROM members m
    JOIN tenants_here t ON t.id = m.tenant_id
    JOIN provider_identities x ON x.tenant_id = m.tenant_id AND x.person_id = m.person_id
    JOIN identity_providers i ON i.tenant_id = x.tenant_id AND i.id = x.provider_id
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
    ORDER BY t.slug, i.name, i.id
    LIMIT most
$$;

-- A session that is confined to a tenant is written where the tenant is here, or where its hold is over. While it
-- leaves, that is refused, since a move copies sessions once; what is left of it, or has come, is passed over as
-- though it were not there.
CREATE FUNCTION write_sessions_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.confined_to::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.confined_to], '{}', '{}') f;
    IF said = 'here' OR (said = 'leaving' AND end_hold(NEW.confined_to)) THEN
        RETURN NEW;
    ELSIF said = 'leaving' OR TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    END IF;
    RETURN NULL;
END $$;

-- Note when a person took another password, and count it.
CREATE FUNCTION note_changed_password()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.password_changed_at := clock_timestamp();
    NEW.password_changes := OLD.password_changes + 1;
    RETURN NEW;
END $$;

-- Delete the person who has signed in, with their sessions, passkeys, challenges and links for another password, and
-- every invitation of this cell to their address; whether there is nobody, a member still, or somebody who is gone by
-- now. A copy of somebody whose account is in another cell goes alike. Raises RC003 where a tenant of which they are
-- a member, or which invited them, is between two cells: its rows are in both. The lock is the one of
-- require_writable.
CREATE FUNCTION delete_account()
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
    address text;
    tenant uuid;
BEGIN
    -- Whoever makes this person a member, or begins a session, waits for this, or this for them.
    SELECT p.email INTO address FROM people p WHERE p.id = me AND p.provider_tenant_id IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'nobody';
    ELSIF EXISTS (SELECT FROM members m JOIN tenants_here t ON t.id = m.tenant_id WHERE m.person_id = me) THEN
        RETURN 'member';
    END IF;
    FOR tenant IN
        SELECT m.tenant_id FROM members m WHERE m.person_id = me
        UNION SELECT i.tenant_id FROM invitations i WHERE i.email = address
        ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
        IF NOT end_hold(tenant) THEN
            RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
        END IF;
    END LOOP;
    DELETE FROM invitations i WHERE i.email = address;
    DELETE FROM people p WHERE p.id = me;
    RETURN 'gone';
END $$;

-- Whom a tenant's identity provider brought is a person of that tenant alone and has no account to delete: they go,
-- with their sessions, when they are a member no more, as who they are at the provider does. Whoever comes again is
-- somebody new.
CREATE FUNCTION forget_brought_person()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
BEGIN
    DELETE FROM people p WHERE p.id = OLD.person_id AND p.provider_tenant_id = OLD.tenant_id;
    RETURN NULL;
END $$;

-- The accounts of an address that are of one tenant each: who signs in, and what the password is compared with. At
-- most `most`, oldest first, but that of first_tenant (a slug) or first_person before all.
CREATE FUNCTION find_tenant_accounts(person_email text, first_tenant text, first_person uuid, most bigint)
RETURNS TABLE (
    id uuid, email text, name text, password_hash text, password_changes bigint, confined_to uuid, tenant text
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash, p.password_changes, t.id, t.slug
    FROM people p JOIN tenants_here t ON t.id = p.provider_tenant_id
    WHERE p.email = person_email AND p.unproven
    ORDER BY coalesce(t.slug = first_tenant, false) OR coalesce(p.id = first_person, false) DESC, p.created_at, p.id
    LIMIT most
$$;

-- End every way by which the person who has signed in could sign in so far, in this cell, other than the password:
-- passkeys, what they are at identity providers, and sessions. Raises RC003 where one of these tenants is between two
-- cells.
CREATE FUNCTION end_own_sign_ins()
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
    tenant uuid;
BEGIN
    FOR tenant IN
        SELECT m.tenant_id FROM members m
        JOIN tenants_here t ON t.id = m.tenant_id
        JOIN provider_identities x ON x.tenant_id = m.tenant_id AND x.person_id = m.person_id
        WHERE m.person_id = me
        GROUP BY m.tenant_id ORDER BY m.tenant_id
    LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
        IF NOT end_hold(tenant) THEN
            RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
        END IF;
        DELETE FROM provider_identities x WHERE x.tenant_id = tenant AND x.person_id = me;
    END LOOP;
    DELETE FROM passkeys k WHERE k.person_id = me;
    UPDATE sessions s SET revoked_at = clock_timestamp() WHERE s.person_id = me AND s.revoked_at IS NULL;
END $$;

-- The person who has signed in has proven that the address of their account is theirs: it is of no single tenant any
-- more. `proven`; `taken` where the address has another such account; `unknown` where the account is in another cell.
-- as_copy: this cell is not home, which has the password.
CREATE FUNCTION prove_own_address(as_copy boolean)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    me uuid := nullif(current_setting('recollect.person_id', true), '')::uuid;
BEGIN
    UPDATE people p
    SET provider_tenant_id = NULL, unproven = false,
        password_hash = CASE WHEN as_copy THEN NULL ELSE p.password_hash END
    WHERE p.id = me AND (p.provider_tenant_id IS NULL OR p.unproven);
    RETURN CASE WHEN FOUND THEN 'proven' ELSE 'unknown' END;
EXCEPTION WHEN unique_violation THEN
    RETURN 'taken';
END $$;

-- Delete the oldest invitation of the transaction's tenant that does not hold, of those that do not count among the
-- mails of a day; whether there was one.
CREATE FUNCTION forget_void_invitation()
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM invitations i WHERE i.tenant_id = tenant AND i.id = (
        SELECT o.id FROM invitations o
        WHERE o.tenant_id = tenant
            AND (o.accepted_at IS NOT NULL OR o.revoked_at IS NOT NULL OR o.expires_at <= clock_timestamp())
            AND (o.mailed_at IS NULL OR o.mailed_at <= clock_timestamp() - interval '24 hours')
        ORDER BY o.created_at, o.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    );
    RETURN FOUND;
END $$;

CREATE TRIGGER sessions_here BEFORE INSERT OR UPDATE ON sessions
    FOR EACH ROW WHEN (NEW.confined_to IS NOT NULL AND current_user = 'recollect_app')
    EXECUTE FUNCTION write_sessions_here();

CREATE TRIGGER changed_password BEFORE UPDATE OF password_hash ON people
    FOR EACH ROW WHEN (NEW.password_hash IS DISTINCT FROM OLD.password_hash) EXECUTE FUNCTION note_changed_password();

CREATE TRIGGER brought_people AFTER DELETE ON members FOR EACH ROW EXECUTE FUNCTION forget_brought_person();

-- OAuth: clients, grants, codes, tokens, and the keys that sign them.
--
-- Grants, codes and tokens are a tenant's. Clients and signing keys are nobody's: they are reached by functions only.

-- Clients that registered, and documents about themselves that others publish under the address that is their id.
CREATE TABLE oauth_clients (
    id text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 2000),
    kind text NOT NULL CHECK (kind = CASE WHEN starts_with(id, 'https://') THEN 'document' ELSE 'registered' END),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    uri text CHECK (length(uri) <= 2000),
    redirect_uris text[] NOT NULL CHECK (cardinality(redirect_uris) BETWEEN 1 AND 10),
    refreshes boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    fresh_until timestamptz,
    last_used_at timestamptz
);
CREATE INDEX oauth_clients_unused ON oauth_clients (created_at) WHERE last_used_at IS NULL;

ALTER TABLE oauth_clients ENABLE ROW LEVEL SECURITY;

-- What a person lets a client do at one resource. Null graph_ids and toolsets are all. A grant ends with its last
-- token, and goes with the membership: who left and comes back is asked again.
CREATE TABLE oauth_grants (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    person_id uuid NOT NULL,
    client_id text NOT NULL,
    client_name text NOT NULL,
    scopes text[] NOT NULL,
    graph_ids uuid[],
    toolsets text[],
    resource text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, person_id) REFERENCES members (tenant_id, person_id) ON DELETE CASCADE
);
CREATE INDEX oauth_grants_person ON oauth_grants (tenant_id, person_id, id);

ALTER TABLE oauth_grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_grants
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_grants TO recollect_app;
GRANT UPDATE (expires_at, last_used_at, revoked_at, revoked_by) ON oauth_grants TO recollect_app;

-- The code of a grant, which its client changes for tokens once. Only hashes are kept of it and of tokens.
CREATE TABLE oauth_codes (
    tenant_id uuid NOT NULL,
    grant_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    redirect_uri text NOT NULL,
    code_challenge text NOT NULL,
    nonce text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    PRIMARY KEY (tenant_id, grant_id),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE oauth_codes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_codes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_codes TO recollect_app;
GRANT UPDATE (used_at) ON oauth_codes TO recollect_app;

CREATE TABLE oauth_access_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    grant_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_access_tokens_grant ON oauth_access_tokens (tenant_id, grant_id);

ALTER TABLE oauth_access_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_access_tokens
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_access_tokens TO recollect_app;
GRANT UPDATE (revoked_at) ON oauth_access_tokens TO recollect_app;

-- Each is used once, and within a moment of that again, by parallel sessions of its client. generation: how many came
-- before it.
CREATE TABLE oauth_refresh_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    grant_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    generation bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    uses bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_refresh_tokens_grant ON oauth_refresh_tokens (tenant_id, grant_id);

ALTER TABLE oauth_refresh_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON oauth_refresh_tokens
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, DELETE ON oauth_refresh_tokens TO recollect_app;
GRANT UPDATE (used_at, uses) ON oauth_refresh_tokens TO recollect_app;

-- fingerprint: which secret the private part is encrypted under.
CREATE TABLE signing_keys (
    id text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 100),
    fingerprint bytea NOT NULL,
    public_key jsonb NOT NULL,
    private_key bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE signing_keys ENABLE ROW LEVEL SECURITY;

-- An access token by its keyed hash, with its grant, its tenant and the person's role there, and the rates of the
-- tenant's plan; whether it still holds is for the caller to judge. None where the person is no member.
CREATE FUNCTION find_oauth_access_token(token_hash bytea)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_status text, grant_id uuid, role text, scopes text[], graph_ids uuid[],
    toolsets text[], default_graph text, resource text, expires_at timestamptz, revoked_at timestamptz, plan text,
    requests_per_minute bigint, key_requests_per_minute bigint, concurrent_calls bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT a.tenant_id, t.slug, t.status, g.id, m.role, a.scopes, g.graph_ids, g.toolsets,
        (SELECT x.name FROM graphs x WHERE x.tenant_id = g.tenant_id AND x.id = ANY (g.graph_ids)
            ORDER BY x.name <> 'default', x.name LIMIT 1),
        g.resource, a.expires_at, coalesce(a.revoked_at, g.revoked_at), p.name, p.requests_per_minute,
        p.key_requests_per_minute, p.concurrent_calls
    FROM oauth_access_tokens a
    JOIN oauth_grants g ON g.tenant_id = a.tenant_id AND g.id = a.grant_id
    JOIN members m ON m.tenant_id = g.tenant_id AND m.person_id = g.person_id
    JOIN tenants_here t ON t.id = a.tenant_id
    JOIN plans p ON p.name = t.plan
    WHERE a.hash = token_hash
$$;

-- The tenant, if it is here, of the code or token with this keyed hash: what it holds is read as that tenant.
CREATE FUNCTION find_oauth_tenant(secret_hash bytea)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM (
        SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = secret_hash
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = secret_hash
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = secret_hash
    ) AS held
    JOIN tenants_here t ON t.id = held.tenant_id
$$;

-- A client by its id.
CREATE FUNCTION find_oauth_client(client_id text)
RETURNS TABLE (
    id text, name text, uri text, redirect_uris text[], refreshes boolean, fresh_until timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT c.id, c.name, c.uri, c.redirect_uris, c.refreshes, c.fresh_until
    FROM oauth_clients c WHERE c.id = client_id
$$;

-- Keep a client that registered, or what a document says now. One that registered never changes. There are 10,000 at
-- most: those go that were never used for a day or were not used for half a year; beyond 9,000 that were used, those
-- that were used on one day only, then those that were not used for the longest time; and beyond 10,000 in all, the
-- oldest of those that were never used.
-- Whoever makes thousands of clients and uses them at once, for which one person who may sign in is enough, does not
-- have everybody else's forgotten: those that were used more than a day after they were made stay first, and those
-- that are about to be used have places of their own.
CREATE FUNCTION keep_oauth_client(
    client_id text, client_name text, client_uri text, uris text[], may_refresh boolean, fresh timestamptz
)
RETURNS TABLE (created_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM oauth_clients c
    WHERE (c.last_used_at IS NULL AND c.created_at < clock_timestamp() - interval '1 day')
        OR c.last_used_at < clock_timestamp() - interval '180 days'
        OR c.id IN (
            SELECT o.id FROM oauth_clients o WHERE o.last_used_at IS NOT NULL
            ORDER BY o.last_used_at > o.created_at + interval '1 day' DESC, o.last_used_at DESC
            OFFSET 9000
        );
    DELETE FROM oauth_clients c
    WHERE c.id IN (
        SELECT o.id FROM oauth_clients o WHERE o.last_used_at IS NULL
        ORDER BY o.created_at DESC
        OFFSET 9999 - (SELECT count(*) FROM oauth_clients u WHERE u.last_used_at IS NOT NULL)
    );
    INSERT INTO oauth_clients AS c (id, kind, name, uri, redirect_uris, refreshes, fresh_until)
    VALUES (
        client_id, CASE WHEN starts_with(client_id, 'https://') THEN 'document' ELSE 'registered' END, client_name,
        client_uri, uris, may_refresh, fresh
    )
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, uri = EXCLUDED.uri, redirect_uris = EXCLUDED.redirect_uris,
        refreshes = EXCLUDED.refreshes, fresh_until = EXCLUDED.fresh_until
    WHERE c.kind = 'document'
    RETURNING c.created_at
$$;

-- Note that a client was used, at most once a day.
CREATE FUNCTION touch_oauth_client(client_id text)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    UPDATE oauth_clients c SET last_used_at = clock_timestamp()
    WHERE c.id = client_id
        AND (c.last_used_at IS NULL OR c.last_used_at < clock_timestamp() - interval '1 day')
$$;

-- All signing keys, the newest first. Their private parts are encrypted.
CREATE FUNCTION list_signing_keys()
RETURNS TABLE (id text, fingerprint bytea, public_key jsonb, private_key bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.fingerprint, k.public_key, k.private_key, k.created_at FROM signing_keys k ORDER BY k.created_at DESC
$$;

-- Add a key, unless there is one of this secret that is younger than 30 days: of gateways that find none at the same
-- time, one adds it. Five are kept: what an older one signed has ended long ago.
CREATE FUNCTION add_signing_key(key_id text, secret_fingerprint bytea, public_part jsonb, private_part bytea)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('recollect.signing_keys', 0));
    INSERT INTO signing_keys (id, fingerprint, public_key, private_key)
    SELECT key_id, secret_fingerprint, public_part, private_part
    WHERE NOT EXISTS (
        SELECT 1 FROM signing_keys k
        WHERE k.fingerprint = secret_fingerprint AND k.created_at > clock_timestamp() - interval '30 days'
    );
    DELETE FROM signing_keys k
    WHERE k.id IN (SELECT o.id FROM signing_keys o ORDER BY o.created_at DESC OFFSET 5)
$$;

-- What the person who has signed in lets clients do, in all tenants: what holds, the last used first. As the tenants'
-- own lists have it; the names of graphs come with it, and null is all.
CREATE FUNCTION list_own_grants(most bigint)
RETURNS TABLE (
    tenant_id uuid, tenant text, tenant_name text, role text, id uuid, client_id text, client_name text, scopes text[],
    graphs text[], toolsets text[], created_at timestamptz, last_used_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.slug, t.name, m.role, g.id, g.client_id, g.client_name, g.scopes,
        CASE WHEN g.graph_ids IS NOT NULL THEN ARRAY(
            SELECT x.name FROM graphs x WHERE x.tenant_id = g.tenant_id AND x.id = ANY (g.graph_ids) ORDER BY x.name
        ) END,
        g.toolsets, g.created_at, g.last_used_at
    FROM members m
    JOIN tenants_here t ON t.id = m.tenant_id
    JOIN oauth_grants g ON g.tenant_id = m.tenant_id AND g.person_id = m.person_id
    WHERE m.person_id = nullif(current_setting('recollect.person_id', true), '')::uuid
        AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
    ORDER BY coalesce(g.last_used_at, g.created_at) DESC, g.id DESC
    LIMIT most
$$;

-- The audit log of each tenant.
--
-- Who administered what of a tenant, and when. Each entry is written in the transaction of its act.

-- objects: what the act was on, as `kind:id`. address: of the client, as it is limited by. details: small, with no text
-- that is remembered and no secrets.
CREATE TABLE audit_log (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    action text NOT NULL CHECK (length(action) BETWEEN 1 AND 64),
    objects text[] NOT NULL,
    address text CHECK (length(address) <= 100),
    trace_id text CHECK (length(trace_id) <= 32),
    details jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(details::text) <= 4000),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX audit_log_at ON audit_log (tenant_id, at);

ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY;

-- Who signs in is of no tenant yet: their sign-ins stand in the log of each tenant that they are a member of.
-- It asks who is a member, which operators may not see.
CREATE POLICY of_a_member ON audit_log FOR INSERT TO recollect_app
    WITH CHECK (
        action IN ('session.started', 'session.ended', 'session.refused', 'person.password_changed')
        AND EXISTS (
            SELECT 1 FROM members m
            WHERE m.tenant_id = audit_log.tenant_id
                AND m.person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid)
        )
    );
CREATE POLICY tenant_isolation ON audit_log
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT ON audit_log TO recollect_app;
GRANT INSERT ON audit_log TO recollect_operator;

-- Nobody changes an entry, and none is deleted but by retention and by the erasure of its tenant, which say so: by a
-- setting that an owner's DELETE by mistake does not have.
CREATE FUNCTION keep_audit_entry()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('recollect.audit_removal', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

-- Delete the oldest entries of the tenant of this transaction that are older than they are kept, so many at most; how
-- many. The application may not delete: it has this function, which keeps 30 days whatever it is asked.
CREATE FUNCTION forget_audit(kept interval, most bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM set_config('recollect.audit_removal', 'on', true);
    WITH old AS (
        SELECT o.tenant_id, o.id FROM audit_log o
        WHERE o.tenant_id = nullif(current_setting('recollect.tenant_id', true), '')::uuid
            AND o.at < statement_timestamp() - greatest(kept, interval '30 days')
        ORDER BY o.at
        LIMIT most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM audit_log a USING old o WHERE a.tenant_id = o.tenant_id AND a.id = o.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM set_config('recollect.audit_removal', '', true);
    RETURN gone;
END $$;

-- An act of a person is noted where the tenant is here, or its hold is over. Elsewhere it is passed over: somebody
-- signs in whichever of their tenants is moving. The lock is the one of require_writable. Who has it alone keeps it
-- for a moment; where it does not come, nobody's sign-in waits for longer than that.
CREATE FUNCTION note_acts_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.tenant_id::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.tenant_id], '{}', '{}') f;
    IF said = 'here' OR (said = 'leaving' AND end_hold(NEW.tenant_id)) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION keep_audit_entry();

-- What a tenant's own transaction writes is asked for when that ends.
-- What a person does who signs in is noted in the log of each of their tenants, in a transaction of no tenant, which
-- does not ask whether one of them is leaving. So this does: such an entry would have a move end, since both cells
-- differ, or be lost when the tenant departs.
CREATE TRIGGER acts_here BEFORE INSERT ON audit_log
    FOR EACH ROW WHEN (
        current_user = 'recollect_app' AND nullif(current_setting('recollect.tenant_id', true), '') IS NULL
    )
    EXECUTE FUNCTION note_acts_here();

-- Webhooks, what each has seen, and deliveries.

-- Webhooks: where a tenant wants to be told of events, how far each has been told, and what is still to be sent.
--
-- No writer of a graph writes here. The worker looks at what is stored anyway and compares it with what it has told.
CREATE TABLE webhooks (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    url text NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
    description text NOT NULL CHECK (length(description) <= 500),
    event_types text[] NOT NULL CHECK (cardinality(event_types) BETWEEN 1 AND 50),
    graph_ids uuid[], -- null: of all graphs, those to come too
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text CHECK (disabled_reason IN ('asked', 'gone', 'failing')),
    disabled_at timestamptz,
    -- Encrypted under a key that is derived from RECOLLECT_KEY_SECRET. The previous one signs, too, until it ends.
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_secret_ends_at timestamptz,
    -- Since when no attempt succeeded; null where the last one did.
    failing_since timestamptz,
    -- Up to when jobs, keys and members were looked at, and from when on they are told.
    looked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    told_from timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    CHECK (enabled = (disabled_reason IS NULL) AND enabled = (disabled_at IS NULL)),
    CHECK ((previous_secret IS NULL) = (previous_secret_ends_at IS NULL))
);

ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON webhooks
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks TO recollect_app;

-- Up to which revision a webhook has been told of a graph. A row outlives its graph until the webhook was told of its
-- end, so it refers to none.
CREATE TABLE webhook_cursors (
    tenant_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (tenant_id, webhook_id, graph_id),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, id) ON DELETE CASCADE
) WITH (
    fillfactor = 70
);

ALTER TABLE webhook_cursors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON webhook_cursors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_cursors TO recollect_app;

-- An event for one webhook, and how it goes with sending it. What changed in a graph stands in `changes` alone: here
-- are the revisions. `source` says what the event is of, so that nothing becomes two. Never what an answer said.
CREATE TABLE webhook_deliveries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    event_type text NOT NULL CHECK (length(event_type) BETWEEN 1 AND 100),
    source text NOT NULL CHECK (length(source) BETWEEN 1 AND 200),
    occurred_at timestamptz NOT NULL,
    graph_id uuid,
    after_revision bigint,
    revision bigint,
    data jsonb,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts bigint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz DEFAULT clock_timestamp(), -- null: none follows
    lease uuid,
    claimed_until timestamptz,
    last_attempt_at timestamptz,
    last_status bigint,
    last_error text CHECK (length(last_error) <= 100),
    delivered_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, webhook_id, source),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    CHECK ((graph_id IS NULL) = (revision IS NULL) AND (graph_id IS NULL) = (after_revision IS NULL)),
    CHECK ((graph_id IS NULL) = (data IS NOT NULL)),
    CHECK ((lease IS NULL) = (claimed_until IS NULL)),
    CHECK (delivered_at IS NULL OR next_attempt_at IS NULL)
) WITH (
    fillfactor = 70
);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (tenant_id, webhook_id, next_attempt_at)
    WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (tenant_id, webhook_id, id);
CREATE INDEX webhook_deliveries_of_graph ON webhook_deliveries (tenant_id, graph_id) WHERE graph_id IS NOT NULL;
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (tenant_id, created_at);

ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON webhook_deliveries
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries TO recollect_app;

-- Idempotency keys: the answers to calls that may be repeated.
--
-- One credential must not use up the keys of its whole tenant, so each key stores which credential sent it.

-- key_hash, request_hash, rights_hash: keyed hashes of the key with whose it is, of the request, and of what its
-- sender may. answer: encrypted; null as long as there is none, empty where it is not kept. A row is inserted in the
-- transaction of the act: where there is a row, the act is done.
CREATE TABLE idempotency_keys (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    key_hash bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
    rights_hash bytea NOT NULL CHECK (octet_length(rights_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    answer bytea,
    -- A keyed hash of the tenant and the credential.
    sender_hash bytea NOT NULL CHECK (octet_length(sender_hash) = 32),
    PRIMARY KEY (tenant_id, key_hash)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (tenant_id, expires_at);
CREATE INDEX idempotency_keys_sender ON idempotency_keys (tenant_id, sender_hash) WHERE sender_hash IS NOT NULL;

ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON idempotency_keys
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO recollect_app;

-- Names and texts as they are compared and indexed: keys, apostrophes, case, and words of labels.

-- The texts of an array one after the other. PostgreSQL's own array_to_string is not immutable, for the sake of types
-- other than text; an index needs it to be.
CREATE FUNCTION joined(texts text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
AS $$ SELECT array_to_string(texts, E'\n') $$;

-- Apostrophes that keyboards and models write for each other (’, ‘, ‛, ʼ, ＇) as the plain one, at which words end.
CREATE FUNCTION plain_apostrophes(text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT translate(text, E'\u2018\u2019\u201b\u02bc\uff07', repeat('''', 5)) $$;

-- The key of a name: entities whose names look the same are the same, and are found by this key. It is the name in
-- Unicode's normal form NFC with plain apostrophes, without white space at its ends. What is white space is what
-- Python's str.strip() takes for it. A text whose normal form is too long for an index (2048 bytes) is its own key.
CREATE FUNCTION name_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN octet_length(normalize(recollect.plain_apostrophes(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')), NFC)) <= 2048
        THEN normalize(recollect.plain_apostrophes(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')), NFC)
        ELSE name END
$$;

-- What names have in common that differ in case, in width (Unicode's NFKC), in apostrophes and the like only: the
-- first 512 characters. An index computes it, without the search path of this schema.
CREATE FUNCTION look_alike_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT left(lower(normalize(recollect.plain_apostrophes(recollect.name_key(name)), NFKC)), 512) $$;

-- Keep the key of a name where it differs from the name. Few names do: so the indexes of keys stay small.
CREATE FUNCTION set_name_key() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.name_key := nullif(name_key(NEW.name), NEW.name);
    RETURN NEW;
END $$;

-- The words of summaries and tags, which are found whatever apostrophes they have: their words are those of the text
-- with plain ones, as the words of questions and of passages are.
CREATE FUNCTION label_words(text text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT to_tsvector('english', recollect.plain_apostrophes(text)) $$;

-- A name as completions compare it: in lower case, without accents, in the normal form NFKC and with plain
-- apostrophes; its first 512 characters.
CREATE FUNCTION folded_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT left(normalize(regexp_replace(
        normalize(lower(translate(replace(replace(recollect.plain_apostrophes(name), 'ß', 'ss'), 'ẞ', 'SS'),
            'øØłŁđĐı', 'oOlLdDi')), NFKD),
        E'[\u0300-\u036f]', '', 'g'), NFC), 512)
$$;

-- A text in the form in which substrings are compared: normal form NFC, with plain apostrophes.
CREATE FUNCTION plain_text(text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT normalize(recollect.plain_apostrophes(text), NFC) $$;

-- Whether a text is not in normal form NFC: some of its letters are decomposed. Few texts are such. Whether it is ASCII
-- is asked first, since that costs next to nothing.
CREATE FUNCTION is_decomposed(text text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT octet_length(text) > length(text) AND text IS NOT NFC NORMALIZED $$;

-- Whether a text contains a substring, however either is composed. `patterns`: of the substring in normal form NFC, with
-- any character for each apostrophe; `plain_patterns`: the same with plain apostrophes. Texts that are in this form, as
-- nearly all are, are compared as they are; where the substring has an apostrophe, so that its pattern matches more,
-- by the plain pattern, too. Others are compared as they are in this form. Indexes serve both. Several substrings (any
-- of them) have no apostrophes.
CREATE FUNCTION holds(text text, patterns text[], plain_patterns text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE ANY (patterns)
            AND (strpos(plain_patterns[1], '''') = 0 OR recollect.plain_text(text) ILIKE ANY (plain_patterns))
        OR recollect.is_decomposed(text) AND recollect.plain_text(text) ILIKE ANY (plain_patterns)
$$;

-- The same for one substring, as the planner estimates it best where the pattern is not known when it plans.
CREATE FUNCTION holds(text text, pattern text, plain_pattern text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE pattern AND (strpos(plain_pattern, '''') = 0 OR recollect.plain_text(text) ILIKE plain_pattern)
        OR recollect.is_decomposed(text) AND recollect.plain_text(text) ILIKE plain_pattern
$$;

-- Nodes (entities, facts, placeholders), their versions and aliases, and how they are found by name.

-- The head of each lineage: its newest version, or the tombstone of a deleted one.
CREATE TABLE nodes (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    version integer NOT NULL,
    version_id uuid NOT NULL,
    name text CHECK (length(name) BETWEEN 1 AND 512),
    kind text,
    content text,
    summary text,
    tags text[] NOT NULL DEFAULT '{}',
    importance double precision CHECK (importance BETWEEN 0 AND 10),
    metadata jsonb NOT NULL DEFAULT '{}',
    parent_id uuid,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'outdated', 'archived')),
    source text,
    thread text,
    said_at timestamptz,
    freshness_at timestamptz,
    ttl_days double precision,
    expires_at timestamptz,
    last_dedup_at timestamptz,
    placeholder boolean NOT NULL DEFAULT false,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL,
    -- When an entity last changed by observations that compaction has taken away: the past is told as it was.
    changed_before timestamptz,
    -- Why a version was written, where its writer told it. It holds until another is told or the status changes.
    reason text,
    name_key text,
    said_offset smallint,
    -- labels: the words of the summary and, with the weight B, of the tags; null: there are neither, or they were not
    -- analysed yet. labels_version: of the analysis that made them.
    labels tsvector,
    labels_version smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    -- Foreign keys of what writes of a graph add are checked once, before the commit, and not after each statement: a
    -- row that is added and changed in one transaction is checked once, and the checks are planned once a session
    -- (`end_statements` of transactions).
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    fillfactor = 80,
    -- Statistics of large tables are gathered after so many rows, not after a tenth of the table: a tenth of ten
    -- million is a tenant that has worked for weeks.
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
-- A plan that is made once for any tenant expects an average one, which of thousands is tiny: where PostgreSQL (15
-- and 16, which take each of a list of keys for a search of its own) expected fewer rows of it than keys, it read all
-- of the tenant's, of a large one, too. So it takes each for a tenth of a table: to expect too many has rows looked
-- up by their keys, which is right for few as well.
ALTER TABLE nodes ALTER COLUMN tenant_id SET (n_distinct = 10);
CREATE UNIQUE INDEX nodes_live_name ON nodes (tenant_id, graph_id, name)
    WHERE removed_revision IS NULL AND name IS NOT NULL;
CREATE INDEX nodes_live ON nodes (tenant_id, graph_id, created_at, id) WHERE removed_revision IS NULL;
CREATE INDEX nodes_live_fact ON nodes (tenant_id, graph_id, hashtextextended(content, 0))
    WHERE removed_revision IS NULL AND name IS NULL;
-- Nodes that recall may have to leave out.
CREATE INDEX nodes_unusual ON nodes (tenant_id, graph_id, id) WHERE removed_revision IS NULL
    AND (status <> 'active' OR expires_at IS NOT NULL OR freshness_at IS NOT NULL);
-- GIN lists of pending entries are kept short, since a search reads them from end to end: with the default of 4 MB,
-- searches took four times as long after 2,000 new entities (measured). Shorter still, and batches of writes pay for
-- it.
CREATE INDEX nodes_trigrams ON nodes USING gin (graph_id, name gin_trgm_ops, kind gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL;
-- Names are recognised in texts whatever their case.
CREATE INDEX nodes_live_any_case ON nodes (tenant_id, graph_id, lower(name))
    WHERE removed_revision IS NULL AND name IS NOT NULL;
CREATE INDEX nodes_live_parent ON nodes (tenant_id, parent_id) WHERE removed_revision IS NULL AND parent_id IS NOT NULL;
CREATE INDEX nodes_expiring ON nodes (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX nodes_expiring_live ON nodes (tenant_id, graph_id, expires_at)
    WHERE removed_revision IS NULL AND expires_at IS NOT NULL;
CREATE INDEX nodes_tag_trigrams ON nodes USING gin (graph_id, joined(tags) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL AND tags <> '{}';
-- The few names, kinds and tags that are not in normal form NFC: substrings of them are found in that form (holds).
CREATE INDEX nodes_decomposed_trigrams ON nodes
    USING gin (graph_id, plain_text(name) gin_trgm_ops, plain_text(kind) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL
        AND (is_decomposed(name) OR is_decomposed(kind));
CREATE INDEX nodes_decomposed_tag_trigrams ON nodes USING gin (graph_id, plain_text(joined(tags)) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL AND tags <> '{}'
        AND is_decomposed(joined(tags));
-- Names and kinds without their accents, for fuzzy searches. Others are as nodes_trigrams has them.
CREATE INDEX nodes_folded_trigrams ON nodes USING gin (graph_id,
        nullif(folded_name(name), lower(name)) gin_trgm_ops, nullif(folded_name(kind), lower(kind)) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL
        AND (octet_length(name) > length(name) OR octet_length(kind) > length(kind));
-- What waits for the sweep: looked for in every tenant, every few seconds.
CREATE INDEX nodes_to_archive ON nodes (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL AND status <> 'archived';
CREATE INDEX nodes_compactable ON nodes (tenant_id, graph_id, removed_revision) WHERE removed_revision IS NOT NULL;
-- Few: what is archived for good, or waits for its retention.
CREATE INDEX nodes_to_purge ON nodes (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL AND status = 'archived';
-- Few: how many of a graph's entities a ranked search leaves out.
CREATE INDEX nodes_archived ON nodes (tenant_id, graph_id)
    WHERE status = 'archived' AND removed_revision IS NULL AND name IS NOT NULL AND NOT placeholder;
-- A page of all nodes, and of all entities, in the order in which they are listed. What decides whether one is listed
-- now stands in the index, so that those before the page are passed over without a look at their rows.
CREATE INDEX nodes_listed ON nodes (tenant_id, graph_id, id) INCLUDE (expires_at)
    WHERE removed_revision IS NULL AND NOT placeholder;
CREATE INDEX nodes_entities ON nodes (tenant_id, graph_id, created_at, id) INCLUDE (expires_at, status)
    WHERE removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL;
CREATE INDEX nodes_live_key ON nodes (tenant_id, graph_id, name_key, id)
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
CREATE INDEX nodes_live_key_any_case ON nodes (tenant_id, graph_id, lower(name_key))
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
-- Other names differ from their look-alike key in case at most: nodes_live_any_case finds them.
CREATE INDEX nodes_live_look_alikes ON nodes (tenant_id, graph_id, nullif(look_alike_key(name), lower(name)))
    WHERE removed_revision IS NULL AND nullif(look_alike_key(name), lower(name)) IS NOT NULL;
-- Other names are their folded ones, but for case: nodes_live_any_case finds them.
CREATE INDEX nodes_live_folded ON nodes (tenant_id, graph_id, nullif(folded_name(name), lower(name)))
    WHERE removed_revision IS NULL AND nullif(folded_name(name), lower(name)) IS NOT NULL;
CREATE INDEX nodes_labels_in_words ON nodes USING gin (graph_id, labels) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND labels IS NOT NULL;
-- The worker's queue of labels to analyse anew, empty once all are; until then these are found by English words.
CREATE INDEX nodes_other_labels ON nodes (tenant_id, id)
    WHERE labels_version < 2 AND removed_revision IS NULL AND (summary IS NOT NULL OR tags <> '{}');
CREATE INDEX nodes_labels ON nodes USING gin (graph_id, label_words(coalesce(summary, '') || ' ' || joined(tags)))
    WITH (gin_pending_list_limit = 128)
    WHERE labels_version < 2 AND removed_revision IS NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}');

ALTER TABLE nodes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON nodes
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON nodes TO recollect_app;

-- Every version of every node, each with every field.
CREATE TABLE node_versions (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    version integer NOT NULL,
    id uuid NOT NULL,
    name text,
    kind text,
    content text,
    summary text,
    tags text[] NOT NULL,
    importance double precision,
    metadata jsonb NOT NULL,
    parent_id uuid,
    status text NOT NULL,
    source text,
    thread text,
    said_at timestamptz,
    freshness_at timestamptz,
    ttl_days double precision,
    expires_at timestamptz,
    last_dedup_at timestamptz,
    placeholder boolean NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    based_on integer,
    superseded_by uuid,
    added_revision bigint NOT NULL,
    superseded_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    -- Since when the lineage is told to be: a merge makes it as old as the oldest that it took in, and the past stays
    -- as it was told. Null: since the node's created_at.
    began_at timestamptz,
    -- sibling: another version was written beside it while it was a head. While it is not superseded it is still one,
    -- below the highest.
    sibling boolean NOT NULL DEFAULT false,
    reason text,
    name_key text,
    said_offset smallint,
    -- Versions keep the words that they had, for searches of the past.
    labels tsvector,
    labels_version smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, node_id, version),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE node_versions ALTER COLUMN tenant_id SET (n_distinct = 10);
-- Walks of the past ask at every level what hung below a node, and what had expired.
CREATE INDEX node_versions_parent ON node_versions (tenant_id, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX node_versions_expiring ON node_versions (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX node_versions_compactable ON node_versions (tenant_id, graph_id, superseded_revision)
    WHERE superseded_revision IS NOT NULL;
CREATE INDEX node_versions_siblings ON node_versions (tenant_id, graph_id, node_id, version) WHERE sibling;
-- As passages_live, its conditions are true of every key. What goes through the versions of a graph says so of the
-- graph.
CREATE INDEX node_versions_named ON node_versions (tenant_id, graph_id, name) WHERE name IS NOT NULL;
CREATE INDEX node_versions_of_graph ON node_versions (tenant_id, graph_id, node_id) WHERE graph_id IS NOT NULL;
-- What an author wrote that is current, in the order in which lists of nodes have it. As passages_live, its conditions
-- say so of the author.
CREATE INDEX node_versions_of_author ON node_versions (tenant_id, graph_id, created_by, node_id, version DESC)
    WHERE superseded_revision IS NULL AND created_by IS NOT NULL;
CREATE UNIQUE INDEX node_versions_id ON node_versions (tenant_id, id) WHERE id IS NOT NULL;
CREATE INDEX node_versions_keyed ON node_versions (tenant_id, graph_id, name_key) WHERE name_key IS NOT NULL;

ALTER TABLE node_versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON node_versions
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON node_versions TO recollect_app;

-- Names that an entity had before a merge, by which it is still found.
CREATE TABLE aliases (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 512),
    added_revision bigint NOT NULL,
    removed_revision bigint,
    name_key text,
    PRIMARY KEY (tenant_id, node_id, name, added_revision),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
-- What compaction takes away, without looking at what lives.
CREATE INDEX aliases_compactable ON aliases (tenant_id, graph_id, removed_revision) WHERE removed_revision IS NOT NULL;
-- What looks for names that a text may tell is planned once a session, as what is looked up by keys: planning took ten
-- times as long as looking. Each name is looked up by itself (ADR 32): so no plan that was made for tenants of which
-- most are small goes through all of a large graph.
CREATE INDEX aliases_live_name ON aliases (tenant_id, graph_id, name) WHERE removed_revision IS NULL;
CREATE INDEX aliases_live_any_case ON aliases (tenant_id, graph_id, lower(name)) WHERE removed_revision IS NULL;
CREATE INDEX aliases_live_key ON aliases (tenant_id, graph_id, name_key)
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
CREATE INDEX aliases_live_key_any_case ON aliases (tenant_id, graph_id, lower(name_key))
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;

ALTER TABLE aliases ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON aliases
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON aliases TO recollect_app;

-- When a node was first written; null where there is none.
CREATE FUNCTION node_created_at(tenant uuid, node uuid)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT n.created_at FROM nodes n WHERE n.tenant_id = tenant AND same_key(n.id, node) ORDER BY n.id LIMIT 1
$$;

-- Live entities that have one of these names, or had it before a merge: exactly, or in small letters (lowered) where
-- the name has min_length characters or more; by the names and by their keys. The phrases come as keys, too. At most
-- `most`, oldest first.
CREATE FUNCTION entities_named(tenant uuid, graph uuid, names text[], lowered text[], min_length bigint,
    most bigint)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT /* search.entities_named */ n.id
        FROM (
            SELECT e.id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
                    AND same_key(name, w.name)
                ORDER BY name LIMIT 1
            ) AS e
            UNION
            SELECT e.id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name_key IS NOT NULL
                    AND same_key(name_key, w.name)
                ORDER BY name_key, id LIMIT most
            ) AS e
            UNION
            SELECT e.id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
                    AND same_key(lower(name), w.name) AND length(name) >= min_length
                    AND NOT placeholder AND status <> 'archived'
                    AND coalesce(expires_at > statement_timestamp(), true)
                ORDER BY lower(name), id LIMIT most
            ) AS e
            UNION
            SELECT e.id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name_key IS NOT NULL
                    AND same_key(lower(name_key), w.name) AND length(name_key) >= min_length
                    AND NOT placeholder AND status <> 'archived'
                    AND coalesce(expires_at > statement_timestamp(), true)
                ORDER BY lower(name_key), id LIMIT most
            ) AS e
            UNION
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND same_key(name, w.name)
                ORDER BY name OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND same_key(name_key, w.name)
                ORDER BY name_key OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND same_key(lower(name), w.name) AND length(name) >= min_length
                ORDER BY lower(name) OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND same_key(lower(name_key), w.name) AND length(name_key) >= min_length
                ORDER BY lower(name_key) OFFSET 0
            ) AS a
        ) AS i
        CROSS JOIN LATERAL (
            SELECT id, removed_revision, placeholder, status, expires_at FROM search_nodes
            WHERE tenant_id = tenant AND same_key(id, i.id)
            ORDER BY id LIMIT 1
        ) AS n
        WHERE n.removed_revision IS NULL AND NOT n.placeholder AND n.status <> 'archived' AND is_current(n.expires_at)
        ORDER BY n.id
        LIMIT most
    );
END $$;

-- How many live edges of each type a graph has between two of its own nodes that have names, whether or not these
-- have expired: its revision alone decides that. Nodes and edges are hashed (enable_nestloop): to look up both ends
-- of each edge takes five times as long, which a planner that expects few edges does not know.
CREATE FUNCTION edges_between_names(tenant uuid, graph uuid)
RETURNS TABLE (type text, edges bigint)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH /* relations.edges_between_names */ named AS MATERIALIZED (
        SELECT id FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
    )
    SELECT r.type, count(*)
    FROM relations r
    WHERE r.tenant_id = tenant AND r.graph_id = graph AND r.removed_revision IS NULL AND r.to_graph = graph
        AND r.from_node IN (SELECT id FROM named) AND r.to_node IN (SELECT id FROM named)
    GROUP BY r.type;
END $$;

-- Whether a graph has live nodes that recall may have to leave out (nodes_unusual).
CREATE FUNCTION has_unusual_nodes(tenant uuid, graph uuid)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on
AS $$
BEGIN
    RETURN EXISTS (
        SELECT /* recall.has_unusual_nodes */ FROM search_nodes n
        WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
            AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
    );
END $$;

-- Whether recall shows a node: it is neither archived nor expired nor, unless outdated_too, outdated.
CREATE FUNCTION is_node_shown(tenant uuid, node uuid, outdated_too boolean)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on SET enable_sort = off
AS $$
BEGIN
    RETURN (
        SELECT /* recall.is_node_shown */ n.status <> 'archived' AND (n.status <> 'outdated' OR outdated_too)
            AND is_current(n.expires_at)
        FROM search_nodes n
        WHERE n.tenant_id = tenant AND same_key(n.id, node)
        ORDER BY n.id LIMIT 1
    );
END $$;

-- The live nodes of a name in all its forms, placeholders and expired ones too: the one with exactly this name, the
-- one whose name is its key, and the 1,000 oldest others whose names have the same key. The key is computed apart
-- (OFFSET 0): under row-level security an index serves no condition that computes it of a column.
CREATE FUNCTION forms_of(tenant uuid, graph uuid, wanted text)
RETURNS SETOF nodes
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.name)
            AND removed_revision IS NULL AND name IS NOT NULL
        ORDER BY name LIMIT 1)
        UNION ALL
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.key) AND w.key <> w.name
            AND removed_revision IS NULL AND name IS NOT NULL
        ORDER BY name LIMIT 1)
        UNION ALL
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(name_key, w.key) AND name <> w.name
            AND removed_revision IS NULL AND name_key IS NOT NULL
        ORDER BY name_key, id LIMIT 1000)
    ) AS n
$$;

-- The live node that a name means. Where a graph has several forms of the name, an active entity comes before an
-- outdated or archived one, that before a placeholder, and all before what has expired; then exactly this name, then
-- its key, then the oldest. Mostly an active entity has exactly this name: then nothing else is read.
CREATE FUNCTION nodes_named(tenant uuid, graph uuid, wanted text)
RETURNS SETOF nodes
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT e.* FROM (
            SELECT * FROM nodes
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.name)
                AND removed_revision IS NULL AND name IS NOT NULL
            ORDER BY name LIMIT 1
        ) AS e
        WHERE NOT e.placeholder AND e.status = 'active' AND coalesce(e.expires_at > statement_timestamp(), true))
        UNION ALL
        (SELECT f.* FROM forms_of(tenant, graph, w.name) AS f
        ORDER BY CASE WHEN f.expires_at <= statement_timestamp() THEN 3 WHEN f.placeholder THEN 2
                WHEN f.status <> 'active' THEN 1 ELSE 0 END, f.name <> w.name, f.name_key IS NOT NULL, f.id
        LIMIT 1)
        LIMIT 1
    ) AS n
$$;

-- Whatever changes the summary or the tags without their words has the worker make these anew.
CREATE FUNCTION forget_labels() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.labels := NULL;
    NEW.labels_version := 0;
    RETURN NEW;
END $$;

-- The words of a summary and of tags by PostgreSQL's analysis of English, where there are no others.
CREATE FUNCTION english_labels(summary text, tags text[]) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT recollect.label_words(coalesce(summary, '')) || setweight(recollect.label_words(recollect.joined(tags)), 'B')
$$;

-- What a memory says of itself beside its text: its kind, then its tags, then its source, then the texts and whole
-- numbers of its metadata and of the lists in it; 32 at most, of each the first 100 characters
-- (graph/passages/labels.py).
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

-- Nodes for searching, as the other views whose names begin with search_. Under row-level security an operator that
-- is not leakproof (@@, %, LIKE, lower) cannot use its index. These views run as their owner, carry the tenant
-- predicate inside, and show no row where no tenant is set (docs/adr/0002-search-through-views.md). A view shows the
-- columns that there were when it was made: whoever adds one to the table makes the view anew.
CREATE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_nodes TO recollect_app;

-- As the other views for searching: lower() is not known to keep what it is told to itself, so that below row-level
-- security no index serves it. The view has its condition.
CREATE VIEW search_aliases AS
    SELECT * FROM aliases WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_aliases TO recollect_app;

CREATE TRIGGER nodes_name_key BEFORE INSERT ON nodes
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER nodes_other_name_key BEFORE UPDATE OF name ON nodes
    FOR EACH ROW WHEN (OLD.name_key IS NOT NULL OR NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER node_versions_name_key BEFORE INSERT ON node_versions
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER node_versions_other_name_key BEFORE UPDATE OF name ON node_versions
    FOR EACH ROW WHEN (OLD.name_key IS NOT NULL OR NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER aliases_name_key BEFORE INSERT ON aliases
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

CREATE TRIGGER nodes_other_labels BEFORE UPDATE OF summary, tags ON nodes
    FOR EACH ROW WHEN ((NEW.summary IS DISTINCT FROM OLD.summary OR NEW.tags IS DISTINCT FROM OLD.tags)
        AND NEW.labels IS NOT DISTINCT FROM OLD.labels)
    EXECUTE FUNCTION forget_labels();

-- Observations: statements about an entity.

-- Short statements attached to an entity. expires_at: a memory may end although its entity goes on.
CREATE TABLE observations (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    content text NOT NULL,
    thread text,
    said_at timestamptz,
    expires_at timestamptz,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    -- kind, tags, importance, source and metadata of its own; empty: it says nothing of the kind, and its entity's
    -- hold. An outdated one is kept, and told only where outdated memories are asked for. A change closes its row and
    -- adds another of the same id: each row is a version, from added_revision until removed_revision. first_revision:
    -- that of its first version, where this is a later one, which keeps its place among what its entity says. reason:
    -- why it was last changed, if told.
    kind text,
    tags text[] NOT NULL DEFAULT '{}',
    importance double precision CHECK (importance BETWEEN 0 AND 10),
    source text,
    metadata jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'outdated')),
    reason text,
    first_revision bigint,
    -- The versions of an observation have numbers, as those of a node have: a writer says on which one its change is
    -- based, so that of several changes of one version only the first is written.
    version bigint NOT NULL DEFAULT 1,
    -- said_offset: the minutes by which the clock of who said it was ahead of UTC; null: not known, or UTC.
    said_offset smallint,
    PRIMARY KEY (tenant_id, id, added_revision),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE observations ALTER COLUMN tenant_id SET (n_distinct = 10);
-- By hash, since a text may be longer than an index entry can be; also the way to all observations of a node.
CREATE INDEX observations_live ON observations (tenant_id, node_id, hashtextextended(content, 0))
    WHERE removed_revision IS NULL;
CREATE INDEX observations_trigrams ON observations USING gin (graph_id, content gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;
-- The few texts that are not in normal form NFC: substrings of them are found in that form (holds).
CREATE INDEX observations_decomposed_trigrams ON observations USING gin (graph_id, plain_text(content) gin_trgm_ops)
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND is_decomposed(content);
-- A fuzzy search looks at texts about as long as its query: of observations those are few, of names most. It begins
-- with the graph and leaves the tenant to the rows, as the GIN indexes do: without statistics PostgreSQL takes all
-- indexes that begin with the tenant for equally good, and would read a tenant's observations for each one that is
-- looked up by its node.
CREATE INDEX observations_length ON observations (graph_id, length(lower(content)))
    WHERE removed_revision IS NULL;
CREATE INDEX observations_expiring ON observations (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND removed_revision IS NULL;
-- What compaction takes away, without looking at what lives.
CREATE INDEX observations_compactable ON observations (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
-- Few: what is kept but not told.
CREATE INDEX observations_outdated ON observations (tenant_id, graph_id)
    WHERE status = 'outdated' AND removed_revision IS NULL;
-- As passages_live (passages.sql): its condition is true of every key.
CREATE INDEX observations_of_node ON observations (tenant_id, node_id, coalesce(first_revision, added_revision), id)
    WHERE node_id IS NOT NULL;
-- list_tags and describe_schema count the kinds and tags that observations have themselves, and read no other
-- observations.
CREATE INDEX observations_labelled ON observations (tenant_id, graph_id, id)
    WHERE removed_revision IS NULL AND (kind IS NOT NULL OR tags <> '{}');

ALTER TABLE observations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON observations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON observations TO recollect_app;

-- Observations for searching: see search_nodes (nodes.sql).
CREATE VIEW search_observations AS
    SELECT * FROM observations
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_observations TO recollect_app;

-- Relations: typed edges between nodes.

-- A relation whose metadata or ordinal is put anew keeps its id. What it was stays as a row of its own, taken away by
-- the revision that changed it, so that every past state tells what it had then.
-- Directed, typed edges between lineages. graph_id is the source's graph; to_graph differs for a symlink.
CREATE TABLE relations (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    from_node uuid NOT NULL,
    to_graph uuid NOT NULL,
    to_node uuid NOT NULL,
    type text NOT NULL CHECK (length(type) BETWEEN 1 AND 256),
    metadata jsonb NOT NULL DEFAULT '{}',
    ordinal integer,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    -- version_of: of such a former version, the relation that it was. updated_at: when the properties were put, where
    -- that is after the relation was made.
    version_of uuid,
    updated_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, from_node) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE relations ALTER COLUMN tenant_id SET (n_distinct = 10);
CREATE UNIQUE INDEX relations_live ON relations (tenant_id, from_node, type, to_node) WHERE removed_revision IS NULL;
CREATE INDEX relations_live_graph ON relations (tenant_id, graph_id, id) WHERE removed_revision IS NULL;
CREATE INDEX relations_removed_incoming ON relations (tenant_id, to_node) WHERE removed_revision IS NOT NULL;
CREATE INDEX relations_compactable ON relations (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
-- The former versions of a relation: undoing and exports of the past look them up by its id, which the log names.
CREATE INDEX relations_versions ON relations (tenant_id, version_of) WHERE version_of IS NOT NULL;
-- Few edges lead into another graph; those that lead into one are found by it.
CREATE INDEX relations_symlinks ON relations (tenant_id, to_graph, id)
    WHERE removed_revision IS NULL AND to_graph <> graph_id;
-- The edges that lead from a graph into others: few, of which nothing is remembered.
CREATE INDEX relations_symlinks_from ON relations (tenant_id, graph_id, id)
    WHERE removed_revision IS NULL AND to_graph <> graph_id;
-- As passages_live (passages.sql): its condition is true of every key.
CREATE INDEX relations_outgoing ON relations (tenant_id, from_node, id) WHERE from_node IS NOT NULL;
CREATE INDEX relations_incoming ON relations (tenant_id, to_node, id) WHERE removed_revision IS NULL;

ALTER TABLE relations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON relations
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON relations TO recollect_app;

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

-- Passages: what is searched of memories, with their vectors, evidence and the frequencies of words.

-- Searchable pieces of text. Derived and rebuildable: never the only copy of anything.
-- memory_id is the observation's id, or the node's for a fact or a name. A row without a vector is the embedding queue.
CREATE TABLE passages (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    source text NOT NULL CHECK (source IN ('observation', 'fact', 'name')),
    place integer NOT NULL DEFAULT 0,
    thread text,
    said_at timestamptz,
    expires_at timestamptz,
    text text NOT NULL,
    tsv tsvector NOT NULL,
    embedding_model text,
    claimed_until timestamptz,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    -- sequence: what a passage's neighbours share, its thread, else its node. A thread has an order, so every piece
    -- of one has a time. near and far: the words up to 20 and up to 80 around it, its own among them; null until the
    -- worker has been there. settled: its vector and what surrounds it are up to date; a row that is not is the
    -- worker's queue. speaker: the name before the text's first colon, in small letters.
    sequence uuid NOT NULL,
    near tsvector,
    far tsvector,
    speaker text,
    dated boolean NOT NULL DEFAULT false,
    created_by text NOT NULL DEFAULT '',
    settled boolean NOT NULL DEFAULT false,
    -- failures: how often the embedder failed on this text alone while it answered others. refused: why the passage
    -- was set aside, in words of ours that hold nothing stored: it has no vector, is found by its words, and is out
    -- of the queue.
    failures smallint NOT NULL DEFAULT 0,
    refused text,
    refused_at timestamptz,
    -- bulk: written with many others at once, or made anew from what is stored.
    bulk boolean NOT NULL DEFAULT false,
    -- version_id: the sibling head whose content it is. Null: what the node, or what is said of it, is now.
    version_id uuid,
    -- What filters look at, of the memory itself: null where it says nothing, so that its node's holds.
    kind text,
    tags text[],
    importance double precision,
    outdated boolean NOT NULL DEFAULT false,
    -- named_days: the days and months that the text names, as numbers (graph/passages/dates.py); null: none.
    said_offset smallint,
    named_days integer[],
    -- words_version: of the analysis that made tsv.
    words_version smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    fillfactor = 80,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE passages ALTER COLUMN tenant_id SET (n_distinct = 10);
CREATE INDEX passages_live_memory ON passages (tenant_id, memory_id) WHERE removed_revision IS NULL;
CREATE INDEX passages_words ON passages USING gin (graph_id, tsv) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;
CREATE INDEX passages_pending ON passages (tenant_id, id) WHERE NOT settled AND removed_revision IS NULL;
-- The passages of a thread, or of an entity, in their order. Its condition, and those of passages_newest and
-- passages_of_author below, are written as those of no other index of live passages: of indexes that fit alike, PostgreSQL
-- takes the one with the fewest levels where it expects one row, and so read whole graphs from 15,000 passages on.
CREATE INDEX passages_sequence ON passages (tenant_id, graph_id, sequence, said_at, added_revision, id)
    WHERE coalesce(removed_revision, 0) = 0 AND source <> 'name';
CREATE INDEX passages_far ON passages USING gin (graph_id, far) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;
-- When the next of a graph's memories or nodes expires, without looking at the others: part of every search cache key.
CREATE INDEX passages_expiring ON passages (tenant_id, graph_id, expires_at)
    WHERE removed_revision IS NULL AND expires_at IS NOT NULL;
CREATE INDEX passages_refused ON passages (tenant_id, graph_id, id)
    WHERE refused IS NOT NULL AND removed_revision IS NULL;
CREATE INDEX passages_compactable ON passages (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
-- The index by node serves only where a node is asked for, which is what its condition says: no passage is without
-- one. Without statistics PostgreSQL takes a tenant to have a handful of passages, and preferred reading all of them
-- by this index to looking eight up by the primary key.
CREATE INDEX passages_node ON passages (tenant_id, node_id) WHERE node_id IS NOT NULL;
-- Every recall tells how many live passages of its graph have no vector yet: few as a rule, and none is the most
-- frequent.
CREATE INDEX passages_unembedded ON passages (tenant_id, graph_id)
    WHERE NOT settled AND embedding_model IS NULL AND removed_revision IS NULL;
-- Rows of a tenant are looked up by an index that is led by the tenant and their key. A planner that expects one row
-- of a tenant, of one that came or grew after statistics were gathered, takes any index that is led by the tenant,
-- and reads all of the tenant's rows for each that is looked up. It cannot take one whose condition is true of every
-- row, but says so of the key alone: so no index but the primary key is of all rows, here and in the tables of nodes,
-- their versions, observations and relations. Of those of live rows it takes the one with the fewest levels, which
-- has few entries for many rows: with the row's own id none has, and pages come in their order.
CREATE INDEX passages_live ON passages (tenant_id, graph_id, id) WHERE removed_revision IS NULL;
-- What few have written waits in the order of graphs, as live passages are: where PostgreSQL expects one row, it took
-- the index of all live passages and read a whole graph, of which little waited. No other index of passages is for a
-- condition that is written so.
CREATE INDEX passages_waiting_of_few ON passages (tenant_id, graph_id, id)
    WHERE NOT settled AND NOT bulk AND coalesce(removed_revision, 0) = 0;
-- The memories of a graph from the newest on: a filter alone lists them, and so does a question that asks for
-- everything. A name has no time, and comes after all that has one.
CREATE INDEX passages_newest ON passages
    (tenant_id, graph_id, coalesce(said_at, '0001-01-01 00:00:00+00'::timestamptz), id)
    WHERE coalesce(removed_revision, 0) = 0 AND place = 0;
-- The same of one author, however much others said. As passages_live, its condition is true of every key, and says so of
-- the author; place is written so that it serves where an author is asked for, and passages_newest where none is.
CREATE INDEX passages_of_author ON passages
    (tenant_id, graph_id, created_by, coalesce(said_at, '0001-01-01 00:00:00+00'::timestamptz), id)
    WHERE coalesce(removed_revision, 0) = 0 AND coalesce(place, 0) = 0 AND created_by IS NOT NULL;
-- What was said on some days, newest first, and whose text names a day. As passages_live: their conditions are true
-- of every key. The second is written as no other index of live passages by graph: a planner that expects few would
-- take any of these.
CREATE INDEX passages_said ON passages (tenant_id, graph_id, said_at, id)
    WHERE removed_revision IS NULL AND said_at IS NOT NULL;
CREATE INDEX passages_named_days ON passages USING gin (graph_id, named_days) WITH (gin_pending_list_limit = 128)
    WHERE coalesce(removed_revision, 0) = 0 AND named_days IS NOT NULL;
-- The worker's queue of passages to analyse anew, empty once all are. Passages are found by lexemes that Recollect
-- itself finds, in every script, not PostgreSQL's parser.
CREATE INDEX passages_other_words ON passages (tenant_id, id) WHERE words_version < 4;

ALTER TABLE passages ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passages
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passages TO recollect_app;

-- What each passage means by itself, by model: a passage's searched vector is made of its own and its neighbours'.
CREATE TABLE passage_vectors (
    tenant_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (tenant_id, passage_id, model),
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);

ALTER TABLE passage_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passage_vectors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passage_vectors TO recollect_app;

-- The vector of each passage that its neighbours share in, by which it is searched; `passage_vectors` has what each
-- means by itself. A row is written when the vector is another, and never when words, windows or a claim of its
-- passage change: every update of a row writes each index of its table anew, and one of a vector index takes
-- milliseconds. model: as passages.embedding_model, which is null where a passage has no row here. live: whether its
-- passage was not removed; not live are those that serve the past, which no index holds. It may lag behind: what is
-- live, passages say. By tenant into 16 tables, each with the vector indexes of its tenants' large graphs: PostgreSQL
-- looks at every index of a table for each statement that it plans on it, and for each row that is written there.
CREATE TABLE searched_vectors (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    live boolean NOT NULL DEFAULT true,
    -- Whether it begins with a zero. Models that know English best have numbers, the first ones, that only English texts
    -- have. A graph's vectors of either kind have an index of their own.
    other_language boolean NOT NULL GENERATED ALWAYS AS (subvector(embedding, 1, 1) = '[0]'::halfvec) STORED,
    PRIMARY KEY (tenant_id, passage_id),
    CONSTRAINT searched_vectors_passage
        FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
-- An exact scan that had to fetch each vector from out of line would be several times slower.
ALTER TABLE searched_vectors ALTER COLUMN embedding SET STORAGE MAIN;
-- Nobody is granted anything on a partition itself, and each is under the policy none the less. The planner has no
-- use for samples of vectors, and what is erased would stand in them.
DO $$
DECLARE
    part text;
BEGIN
    FOR remainder IN 0..15 LOOP
        part := 'searched_vectors_' || to_char(remainder, 'FM00');
        EXECUTE format('CREATE TABLE %I PARTITION OF searched_vectors FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            part, remainder);
        EXECUTE format(
            'ALTER TABLE %I SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000)', part);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STATISTICS 0', part);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY tenant_isolation ON %I
            USING (tenant_id = (SELECT nullif(current_setting(''recollect.tenant_id'', true), '''')::uuid))', part);
    END LOOP;
END $$;
-- As passages_live: its condition is true of every key. By it a kind of vectors is compared that is too small for a vector
-- index.
CREATE INDEX searched_vectors_live ON searched_vectors (tenant_id, graph_id, other_language, passage_id) WHERE live;

ALTER TABLE searched_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON searched_vectors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON searched_vectors TO recollect_app;

-- What the second stage of recall ranks candidates by: of each passage and model, what its tokens mean in it, and the
-- days that its text tells of. Derived by the worker with the vector of passage_vectors, and rebuildable. A recall
-- reads some hundred rows of 1 to 3 KB: in the table itself, as they are. Bits cannot be compressed, and the planner
-- has no use for samples of them; what is erased would stand in those.
-- generation: which rules made it; rows of others are not read, and made anew. tokens: a bit for the sign of each
-- number of each token's state, one token after the other; empty of models that tell nothing of tokens. dates: days,
-- told by the calendar or from the day on which the text was said.
CREATE TABLE passage_evidence (
    tenant_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    generation bigint NOT NULL,
    -- An embedder may have tokens of texts in some languages only. Without any, a passage is ranked by its words and
    -- its meaning; with none, as one of stop words alone, it matches nothing token by token.
    tokens bytea,
    dates datemultirange NOT NULL,
    PRIMARY KEY (tenant_id, passage_id, model),
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
) WITH (
    toast_tuple_target = 8160,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE passage_evidence ALTER COLUMN tokens SET STORAGE EXTERNAL;
ALTER TABLE passage_evidence ALTER COLUMN tokens SET STATISTICS 0;
ALTER TABLE passage_evidence ALTER COLUMN dates SET STATISTICS 0;

ALTER TABLE passage_evidence ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passage_evidence
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passage_evidence TO recollect_app;

-- In how many live passages of a graph each word stands; words of a single passage have no row. Counted by the worker,
-- from a sample where a graph is large, whenever the graph has grown by a fifth.
CREATE TABLE terms (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    lexeme text NOT NULL,
    passages bigint NOT NULL,
    -- The words of a graph as they are written, by which mistyped words of questions are corrected. A lexeme is often
    -- no word: that of "cookies" is "cooki". written: how many live passages have the lexeme as a word, in small
    -- letters; passages: how many have it as a lexeme, 0 where only one has.
    written bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, graph_id, lexeme),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX terms_by_first_letter ON terms (tenant_id, graph_id, char_length(lexeme), left(lexeme, 1), written DESC)
    WHERE written > 0;
CREATE INDEX terms_by_last_letter ON terms (tenant_id, graph_id, char_length(lexeme), right(lexeme, 1), written DESC)
    WHERE written > 0;

ALTER TABLE terms ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON terms
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON terms TO recollect_app;

-- Words for searching: see search_nodes (nodes.sql). Below row-level security, no index of char_length() or left() serves.
CREATE VIEW search_terms AS
    SELECT * FROM terms
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_terms TO recollect_app;

-- The passages before one in its sequence, nearest first. Plain SQL, run as its caller.
CREATE FUNCTION passages_before(passage passages, most bigint)
RETURNS SETOF passages
LANGUAGE sql STABLE
AS $$
    SELECT p.* FROM passages p
    WHERE p.tenant_id = passage.tenant_id AND p.graph_id = passage.graph_id AND p.sequence = passage.sequence
        AND passage.source <> 'name'
        AND is_live(p.removed_revision) AND p.source <> 'name'
        AND (p.said_at, p.added_revision, p.id) < (passage.said_at, passage.added_revision, passage.id)
    ORDER BY p.said_at DESC, p.added_revision DESC, p.id DESC
    LIMIT most
$$;

-- The passages after one in its sequence, nearest first. Plain SQL, run as its caller.
CREATE FUNCTION passages_after(passage passages, most bigint)
RETURNS SETOF passages
LANGUAGE sql STABLE
AS $$
    SELECT p.* FROM passages p
    WHERE p.tenant_id = passage.tenant_id AND p.graph_id = passage.graph_id AND p.sequence = passage.sequence
        AND passage.source <> 'name'
        AND is_live(p.removed_revision) AND p.source <> 'name'
        AND (p.said_at, p.added_revision, p.id) > (passage.said_at, passage.added_revision, passage.id)
    ORDER BY p.said_at, p.added_revision, p.id
    LIMIT most
$$;

-- A text without the name of its speaker before it: everybody's turns are around everybody's.
CREATE FUNCTION unlabelled(text text, speaker text)
RETURNS text
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN starts_with(lower(text), speaker || ': ') THEN substr(text, length(speaker) + 3) ELSE text END $$;

-- The ids of up to `most` passages on either side of one in its sequence. Where there are no statistics, the planner
-- expects one passage in a graph, and would read and sort the whole of it for each: here it may not sort. Plain SQL,
-- run as its caller.
CREATE FUNCTION passages_beside(passage passages, most bigint)
RETURNS SETOF uuid
LANGUAGE sql STABLE SET enable_sort = off
AS $$
    SELECT id FROM passages_before(passage, most)
    UNION ALL
    SELECT id FROM passages_after(passage, most)
$$;

-- How many live passages of a graph have no vector yet, counted up to `most`.
CREATE FUNCTION count_waiting(tenant uuid, graph uuid, most bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT /* passages.count_waiting */ count(*) FROM (
            SELECT FROM passages
            WHERE tenant_id = tenant AND graph_id = graph AND NOT settled AND embedding_model IS NULL
                AND removed_revision IS NULL
            LIMIT most
        ) AS waiting
    );
END $$;

-- When the next memory or node of a graph expires. Two indexes tell it, however many there are.
CREATE FUNCTION next_expiry(tenant uuid, graph uuid)
RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT /* recall.next_expiry */ least(
            (SELECT min(p.expires_at) FROM passages p
            WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
                AND p.expires_at > statement_timestamp()),
            (SELECT min(n.expires_at) FROM nodes n
            WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
                AND n.expires_at > statement_timestamp()))
    );
END $$;

-- Whether a live passage of a graph has a word. By the index of words and no others (enable_indexscan): a planner that
-- expects many passages with it goes through the tenant's, and reads all of them where none has it (of 100,000: 90 ms).
CREATE FUNCTION is_word_in_use(tenant uuid, graph uuid, word tsquery)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
BEGIN
    RETURN EXISTS (
        SELECT /* recall.is_word_in_use */ FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL AND p.tsv @@ word
    );
END $$;

-- For each of these words that no passage has (by the query for it), words of the graph of about its length with the
-- same first or last letter, the most frequent first; `most` of one length and letter, at most. `lexemes`: the main form
-- of each word. What was counted is looked up first (ADR 32): a search of the index of words reads all passages that
-- have a word, and a name may be in half of them.
CREATE FUNCTION similar_words(tenant uuid, graph uuid, unusual text[], lexemes text[], queries text[], most bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    unknown text[];
BEGIN
    IF cardinality(unusual) = 0 THEN
        RETURN '{}';
    END IF;
    -- First, and by itself: nearly all words are known, and looking for similar ones costs far more.
    unknown := ARRAY(
        SELECT /* recall.unknown_words */ u.word FROM unnest(unusual, lexemes, queries) AS u (word, lexeme, query)
        WHERE NOT CASE
            WHEN EXISTS (
                SELECT FROM terms
                WHERE tenant_id = tenant AND graph_id = graph AND same_key(lexeme, u.word) AND as_filter(written > 0)
            ) THEN true
            WHEN EXISTS (
                SELECT FROM terms
                WHERE tenant_id = tenant AND graph_id = graph AND same_key(lexeme, u.lexeme) AND passages > 0
            ) THEN true
            ELSE is_word_in_use(tenant, graph, u.query::tsquery)
        END
    );
    IF cardinality(unknown) = 0 THEN
        RETURN '{}';
    END IF;
    RETURN (
        SELECT /* recall.similar_words */ jsonb_object_agg(u.word, s.words)
        FROM unnest(unknown) AS u (word)
        CROSS JOIN LATERAL (
            SELECT coalesce(jsonb_agg(w.lexeme ORDER BY w.written DESC, w.lexeme), '[]') AS words
            FROM (
                SELECT n.lexeme, n.written
                FROM generate_series(char_length(u.word) - 2, char_length(u.word) + 2) AS l (letters)
                CROSS JOIN LATERAL (
                    SELECT lexeme, written FROM search_terms
                    WHERE tenant_id = tenant AND graph_id = graph AND char_length(lexeme) = l.letters
                        AND left(lexeme, 1) = left(u.word, 1) AND written > 0
                    ORDER BY written DESC LIMIT most
                ) AS n
                UNION
                SELECT n.lexeme, n.written
                FROM generate_series(char_length(u.word) - 2, char_length(u.word) + 2) AS l (letters)
                CROSS JOIN LATERAL (
                    SELECT lexeme, written FROM search_terms
                    WHERE tenant_id = tenant AND graph_id = graph AND char_length(lexeme) = l.letters
                        AND right(lexeme, 1) = right(u.word, 1) AND written > 0
                    ORDER BY written DESC LIMIT most
                ) AS n
            ) AS w
        ) AS s
    );
END $$;

-- Whether something was said within days: from `first` to `last` by the clock of who said it or, where that is not
-- known, between two moments.
CREATE FUNCTION said_within(said timestamptz, said_offset smallint, start timestamptz, finish timestamptz, first date,
    last date)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN said_offset IS NULL THEN said >= start AND said < finish
        ELSE (said AT TIME ZONE 'UTC' + make_interval(mins => said_offset))::date BETWEEN first AND last END
$$;

-- How many live passages of a graph have each of these lexemes: those that were counted (terms), and of the others,
-- which few have, the passages themselves, up to most_looked_at of them, for the first 400 of these lexemes: each is
-- a search of the index. What no live passage has is left out.
CREATE FUNCTION count_words(tenant uuid, graph uuid, lexemes text[], most_looked_at bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    counted jsonb;
    others text[];
    found jsonb;
BEGIN
    SELECT /* passages.counted_words */ coalesce(jsonb_object_agg(t.lexeme, t.passages), '{}') INTO counted
    FROM terms t
    WHERE t.tenant_id = tenant AND t.graph_id = graph AND t.lexeme = ANY (lexemes) AND t.passages > 0;
    IF most_looked_at = 0 THEN
        RETURN counted;
    END IF;
    others := ARRAY(SELECT w.lexeme FROM unnest(lexemes) AS w (lexeme) WHERE NOT counted ? w.lexeme LIMIT 400);
    IF cardinality(others) = 0 THEN
        RETURN counted;
    END IF;
    SELECT /* passages.rare_words */ jsonb_object_agg(w.lexeme, w.passages) INTO found
    FROM (
        SELECT w.lexeme, count(*) AS passages
        FROM (
            SELECT tsv FROM search_passages
            WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND tsv @@ (
                SELECT string_agg('''' || replace(replace(o.lexeme, E'\\', E'\\\\'), '''', '''''') || '''', ' | ')::tsquery
                FROM unnest(others) AS o (lexeme)
            )
            LIMIT most_looked_at
        ) AS p
        CROSS JOIN LATERAL unnest(tsvector_to_array(p.tsv)) AS w (lexeme)
        JOIN unnest(others) AS o (lexeme) ON o.lexeme = w.lexeme
        GROUP BY w.lexeme
    ) AS w;
    RETURN counted || coalesce(found, '{}');
END $$;

-- Passages for searching: see search_nodes (nodes.sql).
CREATE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_passages TO recollect_app;

-- Reading a graph as it was at a revision. Revisions belong to a graph, so each function takes one. The functions are
-- plain SQL with one statement and run as their caller: the planner folds them into the query, and row-level security
-- holds as it does for the tables.
--
-- Reads of the past look what belongs together up by its key. Without statistics of a tenant PostgreSQL expects a row or
-- two of it, takes every index that begins with the tenant for equally good, and compared all with all: a search of the
-- past of 2,000 entities took 16 seconds. So each is looked up (ADR 32).

-- Every node that lived at a revision, in the version that was its head then: of sibling heads the highest. The later
-- version is looked up for each by the primary key (ADR 32), and never every version compared with every other.
CREATE FUNCTION nodes_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT v.* FROM node_versions v
    WHERE v.tenant_id = tenant AND v.graph_id = graph AND v.added_revision <= at_revision
        AND is_live_at(v.superseded_revision, at_revision) AND NOT v.deleted AND NOT EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = tenant AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= at_revision
            ORDER BY later.version OFFSET 0
        )
$$;

-- Every observation that a node had at a revision. Two branches, for the index of live and that of removed rows.
CREATE FUNCTION observations_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF observations
LANGUAGE sql STABLE
AS $$
    SELECT * FROM observations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND added_revision <= at_revision
    UNION ALL
    SELECT * FROM observations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NOT NULL AND removed_revision > at_revision
        AND added_revision <= at_revision
$$;

-- Every relation that there was at a revision, as it was then, by the id that it has now. The columns are those of the
-- table, in its order.
CREATE FUNCTION relations_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF relations
LANGUAGE sql STABLE
AS $$
    SELECT * FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND added_revision <= at_revision
    UNION ALL
    SELECT tenant_id, graph_id, coalesce(version_of, id), from_node, to_graph, to_node, type, metadata, ordinal,
        added_revision, removed_revision, created_at, created_by, version_of, updated_at
    FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NOT NULL AND removed_revision > at_revision
        AND added_revision <= at_revision
$$;

-- A node as it was at a time, or no row: for the ends of relations, which may lie in another graph, with other
-- revisions.
CREATE FUNCTION node_at(tenant uuid, node uuid, at_time timestamptz)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT * FROM (
        SELECT * FROM node_versions
        WHERE tenant_id = tenant AND node_id = node AND created_at <= at_time
        ORDER BY version DESC
        LIMIT 1
    ) AS v
    WHERE NOT v.deleted AND is_current_at(v.expires_at, at_time)
$$;

-- When a node or what is said of it last changed, at a revision; `since`: when its version of then was written.
CREATE FUNCTION changed_at(tenant uuid, graph uuid, node uuid, since timestamptz, at_revision bigint)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT greatest(since, max(o.created_at), max(c.at), (
        SELECT n.changed_before FROM nodes n WHERE n.tenant_id = tenant AND same_key(n.id, node) ORDER BY n.id LIMIT 1
    ))
    FROM (
        SELECT created_at, removed_revision FROM observations
        WHERE tenant_id = tenant AND same_key(node_id, node) AND added_revision <= at_revision
        ORDER BY node_id OFFSET 0
    ) AS o
    LEFT JOIN LATERAL (
        SELECT at FROM changes
        WHERE tenant_id = tenant AND graph_id = graph AND same_key(revision, o.removed_revision)
            AND revision <= at_revision
        ORDER BY revision LIMIT 1
    ) AS c ON true
$$;

-- The version that a node had at a revision; none where it was not there.
CREATE FUNCTION version_at(tenant uuid, node uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT * FROM (
        SELECT v.* FROM node_versions v
        WHERE v.tenant_id = tenant AND same_key(v.node_id, node) AND v.added_revision <= at_revision
        ORDER BY v.node_id DESC, v.version DESC
        LIMIT 1
    ) AS newest
    WHERE NOT newest.deleted AND is_live_at(newest.superseded_revision, at_revision)
$$;

-- The versions of the nodes that stood right below a node at a revision, likewise.
CREATE FUNCTION children_at(tenant uuid, graph uuid, parent uuid, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (
        SELECT DISTINCT v.node_id FROM (
            SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND same_key(parent_id, parent)
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY parent_id OFFSET 0
        ) AS v
    ) AS child
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, child.node_id, at_revision) v WHERE v.graph_id = graph AND v.parent_id = parent
        OFFSET 0
    ) AS n
$$;

-- The nodes that had a name at a revision, in all its forms.
CREATE FUNCTION forms_at(tenant uuid, graph uuid, wanted text, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT v.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        SELECT DISTINCT b.node_id FROM (
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.name)
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0)
            UNION ALL
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name, w.key) AND w.key <> w.name
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0)
            UNION ALL
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND same_key(name_key, w.key)
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name_key OFFSET 0)
        ) AS b
    ) AS bearer
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, bearer.node_id, at_revision) n
        WHERE n.graph_id = graph AND coalesce(n.name_key, n.name) = w.key
        OFFSET 0
    ) AS v
$$;

-- Versions as they are told: with when their lineage began, and the other heads that a conflict left beside them.
-- When a node was first written is looked up only where a version does not say when its lineage began. It runs as its
-- caller, under row-level security.
CREATE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.last_dedup_at, v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision,
        v.created_at, v.created_by, coalesce(v.began_at, node_created_at(v.tenant_id, v.node_id)) AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts, v.reason, v.said_offset
    FROM node_versions v;
GRANT SELECT ON versions TO recollect_app;

-- The node that a name meant at a revision and its time, as nodes_named has it.
CREATE FUNCTION named_at(tenant uuid, graph uuid, wanted text, at_revision bigint, at_time timestamptz)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT f.* FROM forms_at(tenant, graph, wanted, at_revision) AS f
    ORDER BY CASE WHEN f.expires_at <= at_time THEN 3 WHEN f.placeholder THEN 2 WHEN f.status <> 'active' THEN 1 ELSE 0 END,
        f.name <> wanted, f.name_key IS NOT NULL, f.node_id
    LIMIT 1
$$;

-- What the classic searches read: entities and their statements, as they are or as they were.

-- The entities of a graph that are to be found: now (at_revision null), or as they were at a revision and its time.
-- It runs as its caller and the planner folds it into the query, where one branch falls away: what is searched now
-- comes through the search views and their indexes, the past under row-level security and without any.
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
        AND NOT n.placeholder AND n.name IS NOT NULL AND is_current(n.expires_at)
    UNION ALL
    SELECT v.node_id, v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, node_created_at(tenant, v.node_id)),
        changed_at(tenant, graph, v.node_id, v.created_at, at_revision), v.status
    FROM nodes_at(tenant, graph, at_revision) v
    WHERE at_revision IS NOT NULL AND NOT v.placeholder AND v.name IS NOT NULL AND is_current_at(v.expires_at, at_time)
$$;

-- Their statements, likewise, without what is outdated. Whether the entity itself is to be found is for the caller to
-- look at.
CREATE FUNCTION statements_of(tenant uuid, graph uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (id uuid, node_id uuid, content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.id, o.node_id, o.content
    FROM search_observations o
    WHERE at_revision IS NULL AND o.tenant_id = tenant AND o.graph_id = graph AND o.removed_revision IS NULL
        AND is_current(o.expires_at) AND o.status = 'active'
    UNION ALL
    SELECT o.id, o.node_id, o.content
    FROM observations_at(tenant, graph, at_revision) o
    WHERE at_revision IS NOT NULL AND is_current_at(o.expires_at, at_time) AND o.status = 'active'
$$;

-- One of those entities. Matches are looked up by it, so that they must come by their one right index. Without
-- statistics PostgreSQL takes all indexes that begin with the tenant for equally good and may read the whole graph
-- for each match: hence the conditions here are such that no other index can serve.
CREATE FUNCTION entity_of(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (
    name text, kind text, tags text[], importance double precision, created_at timestamptz, status text
)
LANGUAGE sql STABLE
AS $$
    SELECT n.name, n.kind, n.tags, n.importance, n.created_at, n.status
    FROM search_nodes n
    WHERE at_revision IS NULL AND n.tenant_id = tenant AND n.id = node AND n.graph_id IS NOT DISTINCT FROM graph
        AND is_live(n.removed_revision) AND NOT n.placeholder AND n.name IS NOT NULL
        AND coalesce(n.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT v.name, v.kind, v.tags, v.importance, coalesce(v.began_at, node_created_at(tenant, v.node_id)), v.status
    FROM version_at(tenant, node, at_revision) v
    WHERE at_revision IS NOT NULL AND v.graph_id = graph AND NOT v.placeholder AND v.name IS NOT NULL
        AND is_current_at(v.expires_at, at_time)
$$;

-- The statements of one entity. They are looked up by their node (ADR 32).
CREATE FUNCTION statements_about(tenant uuid, graph uuid, node uuid, at_revision bigint, at_time timestamptz)
RETURNS TABLE (content text)
LANGUAGE sql STABLE
AS $$
    SELECT o.content
    FROM (
        SELECT content, expires_at FROM search_observations
        WHERE at_revision IS NULL AND tenant_id = tenant AND same_key(node_id, node)
            AND is_live(removed_revision) AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS o
    WHERE coalesce(o.expires_at > statement_timestamp(), true)
    UNION ALL
    SELECT o.content
    FROM (
        SELECT content, graph_id, expires_at FROM observations
        WHERE at_revision IS NOT NULL AND tenant_id = tenant AND same_key(node_id, node)
            AND added_revision <= at_revision AND coalesce(removed_revision > at_revision, true) AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS o
    WHERE o.graph_id IS NOT DISTINCT FROM graph AND coalesce(o.expires_at > at_time, true)
$$;

-- What recall reads: passages by words, vectors, names and days.
--
-- What a recall asks by keys is planned once a session. Sessions have every statement planned with its values
-- (`session_settings`), for partial indexes of vectors; functions here say otherwise (plan_cache_mode). Nothing here
-- is looked up by going through a table, however small it was when a plan was made (enable_seqscan).
--
-- What only a plan for this very graph does well is little: the vector index, which is of one graph, and the words,
-- which many passages or few may hold. What recall leaves out is asked of each passage that it would give, best
-- first, and of none where the graph has nothing that may be left out: to read all that expires, of which a graph may
-- be full, took longer than the rest (half of 25,000 nodes: 26 ms of 42).

-- The passages of a graph, `most` each, that are best by their own words (words) and by the words around them
-- (context_words), each term weighted by its idf; without what is archived, expired or, unless outdated_too,
-- outdated. Variants and parts of words, and words that most sentences have, have the weight C: here it counts as
-- much as D. Words of labels have the weight B, and rank lowest. By the indexes of words and no others
-- (enable_indexscan): to go through a graph and look at each passage for words that half of them hold takes twice as
-- long, which a planner does not know. It is planned once a session: to plan it took an eighth of a small recall. A
-- plan for any words read all of a tenant's rows by their key as well, to join both: it reads the index of words
-- alone where an entry of an index costs more (cpu_index_tuple_cost).
CREATE FUNCTION find_by_words(tenant uuid, graph uuid, terms text[], idfs double precision[], words tsquery,
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
            AND is_current(p.expires_at) AND (outdated_too OR NOT p.outdated)
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

-- Which kinds of live vectors a graph has, of the values of other_language (passages.sql).
CREATE FUNCTION kinds_of_vectors(tenant uuid, graph uuid)
RETURNS boolean[]
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT /* recall.kinds_of_vectors */ k.kind FROM (VALUES (false), (true)) AS k (kind)
        WHERE EXISTS (
            SELECT FROM searched_vectors v
            WHERE v.tenant_id = tenant AND v.graph_id = graph AND v.live AND v.other_language = k.kind
        )
    );
END $$;

-- The passages of a graph, the `most` nearest to a vector of those with one kind of vectors (other), by the kind's vector
-- index, which is of the vectors of model `embedder`, so long, and is searched with this width (hnsw.ef_search); without
-- what is archived, expired or, unless outdated_too, outdated. A kind without an index has few vectors, and each is
-- compared. The index is written into the statement that reads it: a plan for any graph may not use it. Each row is looked
-- up, until there are enough. Where what the index finds at first (hnsw.ef_search) holds too few, it is read again, and
-- searched on (hnsw.iterative_scan): to be ready for that takes an eighth of the time of a search (measured). Then what was
-- found at first comes twice. Nodes are asked here what is_node_shown says: to call that took half as long again, where one
-- in twenty is left.
-- distance: that of recall, by which passages of both kinds are comparable (`english`, other_scale: SimilarityThresholds).
-- An index has one distance. It orders the passages of a kind as recall does, but those that have what the question has not
-- (`english`): of these twice as many are found, and ordered anew.
CREATE FUNCTION find_nearest_of_kind(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, width bigint,
    most bigint, outdated_too boolean, english integer, other_scale double precision, other boolean)
RETURNS TABLE (id uuid, node_id uuid, source text, distance double precision)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET enable_seqscan = off SET enable_sort = off
AS $$
DECLARE
    template text := $nearest$
        SELECT /* recall.nearest_by_index */ p.id, p.node_id, p.source, v.distance
        FROM (
            SELECT passage_id, of_index, %5$s AS distance
            FROM (
                SELECT passage_id, embedding, embedding::halfvec(%1$s) <=> $1 AS of_index FROM searched_vectors
                WHERE tenant_id = %2$L AND graph_id = %3$L AND live AND model = %4$L AND other_language = %6$L
                ORDER BY embedding::halfvec(%1$s) <=> $1
                LIMIT (SELECT NULL::bigint)
            ) AS i
            ORDER BY %7$I
            LIMIT (SELECT NULL::bigint)
        ) AS v
        CROSS JOIN LATERAL (
            SELECT e.id, e.node_id, e.source FROM search_passages e
            WHERE e.tenant_id = %2$L AND same_key(e.id, v.passage_id) AND e.graph_id = %3$L
                AND is_live(e.removed_revision) AND is_current(e.expires_at)
                AND ($3 OR NOT e.outdated) AND (NOT $4 OR (
                    SELECT n.status <> 'archived' AND (n.status <> 'outdated' OR $3)
                        AND is_current(n.expires_at)
                    FROM search_nodes n
                    WHERE n.tenant_id = %2$L AND same_key(n.id, e.node_id)
                    ORDER BY n.id LIMIT 1
                ))
            ORDER BY e.id LIMIT 1
        ) AS p
        ORDER BY v.%7$I
        LIMIT $2$nearest$;
    unusual boolean := has_unusual_nodes(tenant, graph);
    is_english boolean := english = 0 OR subvector(vector, 1, 1) <> '[0]'::halfvec;
    anew boolean := NOT is_english AND NOT other;
    distance_of text := CASE
        WHEN anew THEN format('subvector(embedding, %1$s + 1, %2$s - %1$s) <=> subvector($1, %1$s + 1, %2$s - %1$s)',
            english, dimensions)
        WHEN is_english AND other AND english > 0 THEN format('1 - %s * (1 - of_index)', other_scale)
        ELSE 'of_index' END;
    found bigint;
BEGIN
    PERFORM set_config('hnsw.ef_search', CASE WHEN anew THEN least(2 * width, 1000) ELSE width END::text, true),
        set_config('hnsw.iterative_scan', 'off', true);
    RETURN QUERY EXECUTE format(template, dimensions, tenant, graph, embedder, distance_of, other,
        CASE WHEN anew THEN 'distance' ELSE 'of_index' END) USING vector, most, outdated_too, unusual;
    GET DIAGNOSTICS found = ROW_COUNT;
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);  -- As sessions have it.
    IF found < most THEN
        RETURN QUERY EXECUTE format(template, dimensions, tenant, graph, embedder, distance_of, other, 'of_index')
            USING vector, most, outdated_too, unusual;
    END IF;
END $$;

-- The same of both kinds, the `most` nearest in all.
CREATE FUNCTION find_nearest(tenant uuid, graph uuid, embedder text, dimensions bigint, vector halfvec, width bigint,
    most bigint, outdated_too boolean, english integer, other_scale double precision)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    kinds boolean[] := kinds_of_vectors(tenant, graph);
BEGIN
    IF cardinality(kinds) = 1 THEN
        RETURN QUERY SELECT f.id, f.node_id, f.source FROM find_nearest_of_kind(tenant, graph, embedder, dimensions,
            vector, width, most, outdated_too, english, other_scale, kinds[1]) AS f;
    ELSE
        RETURN QUERY SELECT f.id, f.node_id, f.source FROM (
            SELECT DISTINCT o.* FROM unnest(kinds) AS k (kind)
            CROSS JOIN LATERAL find_nearest_of_kind(tenant, graph, embedder, dimensions, vector, width, most, outdated_too,
                english, other_scale, k.kind) AS o
        ) AS f
        ORDER BY f.distance, f.id
        LIMIT most;
    END IF;
END $$;

-- Passages of the entities that a question names by another name than their first: passages have only the words of
-- that one. At most `most` of each entity, in no particular order.
CREATE FUNCTION find_by_alias(tenant uuid, graph uuid, entities uuid[], phrases text[], most bigint,
    outdated_too boolean)
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
        SELECT name FROM nodes WHERE tenant_id = tenant AND same_key(id, i.id) ORDER BY id LIMIT 1
    ) AS n
    CROSS JOIN LATERAL (
        SELECT e.id, e.node_id, e.source FROM search_passages e
        WHERE e.tenant_id = tenant AND same_key(e.node_id, i.id) AND as_filter(e.graph_id = graph)
            AND is_live(e.removed_revision) AND is_current(e.expires_at) AND (outdated_too OR NOT e.outdated)
        ORDER BY e.node_id LIMIT most
    ) AS p
    WHERE lower(n.name) <> ALL (phrases) AND (NOT unusual OR is_node_shown(tenant, i.id, outdated_too));
END $$;

-- The newest passages of a graph, `most` of them, that were said within any of some ranges of days (said_within);
-- without what is archived, expired or, unless outdated_too, outdated. Read in the order of the times (enable_sort):
-- no clock is further from UTC than 26 hours.
CREATE FUNCTION find_said_within(tenant uuid, graph uuid, starts timestamptz[], finishes timestamptz[], firsts date[],
    lasts date[], most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY SELECT /* recall.said_within */ s.id, s.node_id, s.source
    FROM unnest(starts, finishes, firsts, lasts) AS r (start, finish, first, last)
    CROSS JOIN LATERAL (
        SELECT p.id, p.node_id, p.source, p.said_at FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
            AND p.said_at >= r.start - interval '26 hours' AND p.said_at < r.finish + interval '26 hours'
            AND said_within(p.said_at, p.said_offset, r.start, r.finish, r.first, r.last)
            AND is_current(p.expires_at) AND (outdated_too OR NOT p.outdated)
            AND (NOT unusual OR is_node_shown(tenant, p.node_id, outdated_too))
        ORDER BY p.said_at DESC, p.id DESC
        LIMIT most
    ) AS s
    ORDER BY s.said_at DESC, s.id DESC
    LIMIT most;
END $$;

-- The newest passages of a graph, `most` of them, whose text names one of these days; without the same. By the index of
-- named days and no others: no other is for live passages and their graph where the condition is written so.
CREATE FUNCTION find_naming_days(tenant uuid, graph uuid, days integer[], most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY SELECT /* recall.naming_days */ n.id, n.node_id, n.source
    FROM (
        SELECT p.id, p.node_id, p.source, p.said_at FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND is_live(p.removed_revision) AND p.named_days && days
            AND is_current(p.expires_at) AND (outdated_too OR NOT p.outdated)
        ORDER BY p.said_at DESC, p.id DESC
        LIMIT (SELECT NULL::bigint)
    ) AS n
    WHERE NOT unusual OR is_node_shown(tenant, n.node_id, outdated_too)
    ORDER BY n.said_at DESC, n.id DESC
    LIMIT most;
END $$;

-- Jobs: work that is too long for one call, done by the worker in steps, and visible while it is done.

-- One step is one transaction: its effect, the cursor after it and the progress commit together. A lease says which
-- worker has a job; one whose lease was taken by another cannot commit.
CREATE TABLE jobs (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    graph_id uuid,
    kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,64}$'),
    -- Of kind, graph and arguments, where an equal job that is under way makes a second one needless.
    digest bytea,
    -- What is asked for, how far it is and what came of it: numbers, ids and options, never stored text.
    arguments jsonb NOT NULL DEFAULT '{}',
    cursor jsonb NOT NULL DEFAULT '{}',
    result jsonb,
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    done bigint NOT NULL DEFAULT 0,
    total bigint,
    error_code text,
    error_message text,
    attempts integer NOT NULL DEFAULT 0,
    cancel_requested boolean NOT NULL DEFAULT false,
    -- Not to be begun yet: its input is still being written.
    held boolean NOT NULL DEFAULT false,
    lease uuid,
    claimed_until timestamptz,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    input_bytes bigint NOT NULL DEFAULT 0,
    output_bytes bigint NOT NULL DEFAULT 0,
    traceparent text,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    finished_at timestamptz,
    -- When the job is removed with its output: set when it has finished, and while it is held.
    expires_at timestamptz,
    -- What a job left may be deleted before the job: that it left something is then still known, and that it is gone.
    output_deleted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    CHECK ((finished_at IS NULL) = (status IN ('queued', 'running'))),
    CHECK ((lease IS NULL) = (claimed_until IS NULL)),
    CHECK (finished_at IS NULL OR lease IS NULL)
) WITH (
    fillfactor = 60
);
CREATE INDEX jobs_pending ON jobs (tenant_id, id) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX jobs_pending_once ON jobs (tenant_id, digest) WHERE digest IS NOT NULL AND finished_at IS NULL;
CREATE INDEX jobs_storing ON jobs (tenant_id, id) WHERE input_bytes + output_bytes > 0;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_of_graph ON jobs (tenant_id, graph_id);
CREATE INDEX jobs_finished ON jobs (tenant_id, finished_at) WHERE finished_at IS NOT NULL;

ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON jobs
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO recollect_app;

-- What a job reads and what it leaves to be fetched, in chunks. These hold stored text, and go before the job does.
CREATE TABLE job_inputs (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    ordinal integer NOT NULL,
    chunk bytea NOT NULL CHECK (octet_length(chunk) BETWEEN 1 AND 1048576),
    PRIMARY KEY (tenant_id, job_id, ordinal),
    FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE job_inputs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON job_inputs
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON job_inputs TO recollect_app;

CREATE TABLE job_outputs (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    ordinal integer NOT NULL,
    chunk bytea NOT NULL CHECK (octet_length(chunk) BETWEEN 1 AND 1048576),
    PRIMARY KEY (tenant_id, job_id, ordinal),
    FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE job_outputs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON job_outputs
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON job_outputs TO recollect_app;

-- Duplicates that were found, those that somebody dismissed, when graphs were last compared, and facts that wait to be related.

-- Pairs of entities that a pass found alike and left as they are. Derived: a pass over the whole graph finds them
-- again.
CREATE TABLE duplicates (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    other_id uuid NOT NULL,
    likeness double precision NOT NULL CHECK (likeness BETWEEN 0 AND 1),
    found_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, graph_id, node_id, other_id),
    CHECK (node_id < other_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, other_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX duplicates_node ON duplicates (tenant_id, node_id);
CREATE INDEX duplicates_other ON duplicates (tenant_id, other_id);

ALTER TABLE duplicates ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON duplicates
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON duplicates TO recollect_app;

-- Pairs of entities that somebody said are different, however alike they are: they are neither proposed nor merged as
-- duplicates until that is taken back. Not derived: only who said it knows. likeness: that of the proposal, which is
-- made again then; null where there was none.
CREATE TABLE dismissals (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    node_id uuid NOT NULL,
    other_id uuid NOT NULL,
    likeness double precision CHECK (likeness BETWEEN 0 AND 1),
    dismissed_by text NOT NULL,
    dismissed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, graph_id, node_id, other_id),
    CHECK (node_id < other_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, other_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX dismissals_node ON dismissals (tenant_id, node_id);
CREATE INDEX dismissals_other ON dismissals (tenant_id, other_id);

ALTER TABLE dismissals ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON dismissals
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON dismissals TO recollect_app;

-- When the entities of a graph were last compared, from end to end.
CREATE TABLE deduplications (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    finished_at timestamptz NOT NULL,
    -- From which likeness on the entities of a graph were compared: everything as alike or more was proposed or
    -- merged. Null: by a version that did not keep it.
    threshold double precision CHECK (threshold BETWEEN 0 AND 1),
    PRIMARY KEY (tenant_id, graph_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE deduplications ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON deduplications
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON deduplications TO recollect_app;

-- New facts that are to be related to the entities they are like, at least as near as threshold (a cosine), once they
-- are embedded. The worker's queue: a row goes in the transaction that relates its fact.
CREATE TABLE autolinks (
    tenant_id uuid NOT NULL,
    node_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    threshold double precision NOT NULL CHECK (threshold BETWEEN 0 AND 1),
    PRIMARY KEY (tenant_id, node_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX autolinks_graph ON autolinks (tenant_id, graph_id, node_id);

ALTER TABLE autolinks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON autolinks
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON autolinks TO recollect_app;

-- Facts that a language model distils from conversations.

-- The language model of a tenant's own. api_key is encrypted under a key derived from RECOLLECT_KEY_SECRET.
CREATE TABLE language_models (
    tenant_id uuid PRIMARY KEY REFERENCES tenants (id),
    url text NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
    model text NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
    api_key bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL
);

ALTER TABLE language_models ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON language_models
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON language_models TO recollect_app;

-- How far a thread was read: up to a turn, by the order of ids. sequence: that of the thread's passages (md5 of its name).
CREATE TABLE distilled_threads (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    sequence uuid NOT NULL,
    until_turn uuid NOT NULL,
    distilled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, graph_id, sequence),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX distilled_threads_age ON distilled_threads (tenant_id, graph_id, distilled_at);

ALTER TABLE distilled_threads ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON distilled_threads
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON distilled_threads TO recollect_app;

-- Which turns of a thread a derived fact rests on, and which job wrote it. version: that of the fact when the job wrote
-- it; a fact with another one was changed by somebody since. A turn may have been deleted since, too.
CREATE TABLE derived_facts (
    tenant_id uuid NOT NULL,
    fact_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    sequence uuid NOT NULL,
    job_id uuid NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (tenant_id, fact_id, turn_id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, fact_id) REFERENCES nodes (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX derived_facts_turn ON derived_facts (tenant_id, turn_id, fact_id);
CREATE INDEX derived_facts_thread ON derived_facts (tenant_id, graph_id, sequence, fact_id);
CREATE INDEX derived_facts_job ON derived_facts (tenant_id, graph_id, job_id, fact_id);

ALTER TABLE derived_facts ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON derived_facts
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON derived_facts TO recollect_app;

-- Operators: their keys, their log, deletions of tenants and receipts of erasures.
--
-- Tenants are deleted with grace. The role of the operator API sees tenants and plans, and nothing that a tenant
-- stored.

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

ALTER TABLE operator_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON operator_keys TO recollect_operator USING (true);

-- Sessions of operators at their pages, by the keyed hash of their secret. Nobody reads or writes the table but by the
-- three functions below, which the role of gateways and workers cannot call: it can neither make a session nor find one.
CREATE TABLE operator_sessions (
    hash bytea PRIMARY KEY,
    key_id uuid NOT NULL REFERENCES operator_keys (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL DEFAULT statement_timestamp() + interval '1 hour'
);
CREATE INDEX operator_sessions_of_key ON operator_sessions (key_id, expires_at);

ALTER TABLE operator_sessions ENABLE ROW LEVEL SECURITY;

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

ALTER TABLE operator_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON operator_log TO recollect_operator USING (true);
GRANT SELECT, INSERT ON operator_log TO recollect_operator;

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

ALTER TABLE tenant_deletions ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_deletions TO recollect_operator USING (true);
GRANT SELECT, INSERT, DELETE ON tenant_deletions TO recollect_operator;

-- What is left of a tenant that was erased: which it was, when and by whom, and how many rows of each table went.
-- `content` is JSON as it was written, and sha256 that of these bytes in hexadecimal digits.
CREATE TABLE erasure_receipts (
    id uuid PRIMARY KEY,
    number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    erased_at timestamptz NOT NULL,
    tenant uuid NOT NULL UNIQUE,
    slug text NOT NULL,
    content text NOT NULL,
    sha256 text NOT NULL CHECK (length(sha256) = 64)
);

ALTER TABLE erasure_receipts ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON erasure_receipts TO recollect_operator USING (true);
GRANT SELECT ON erasure_receipts TO recollect_operator;

CREATE FUNCTION keep_operator_record()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the log and the receipts of operators are append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

-- The operator's key with this keyed hash; it was used now, to the minute.
CREATE FUNCTION find_operator_key(key_hash bytea)
RETURNS TABLE (id uuid, name text, expires_at timestamptz, revoked_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    UPDATE operator_keys SET last_used_at = statement_timestamp()
    WHERE hash = key_hash AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute');
    SELECT k.id, k.name, k.expires_at, k.revoked_at FROM operator_keys k WHERE k.hash = key_hash
$$;

-- Begin a session for the holder of a key; returns when it ends, an hour later. What has ended goes, and of one key the
-- oldest beyond twenty.
CREATE FUNCTION begin_operator_session(session_hash bytea, holds uuid)
RETURNS timestamptz
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM operator_sessions s WHERE s.expires_at <= statement_timestamp() OR s.hash IN (
        SELECT o.hash FROM operator_sessions o WHERE o.key_id = holds ORDER BY o.expires_at DESC, o.hash OFFSET 19
    );
    INSERT INTO operator_sessions AS s (hash, key_id) VALUES (session_hash, holds) RETURNING s.expires_at
$$;

-- The key of a session, as long as both are valid.
CREATE FUNCTION find_operator_session(session_hash bytea)
RETURNS TABLE (id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT k.id, k.name FROM operator_sessions s JOIN operator_keys k ON k.id = s.key_id
    WHERE s.hash = session_hash AND s.expires_at > statement_timestamp()
        AND k.revoked_at IS NULL AND k.expires_at > statement_timestamp()
$$;

-- End a session.
CREATE FUNCTION end_operator_session(session_hash bytea)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM operator_sessions s WHERE s.hash = session_hash
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON operator_log FOR EACH ROW EXECUTE FUNCTION keep_operator_record();

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON erasure_receipts
    FOR EACH ROW EXECUTE FUNCTION keep_operator_record();

-- Cells: in which one a tenant is, and moves between them. The home cell has the directory; every cell has these
-- tables.
--
-- Several PostgreSQL clusters with this one schema, each of which holds some tenants whole. Exactly one cell says of
-- a tenant that it is here (tenants.place).
--
-- A tenant that has departed from one cell and is not here in the other yet is served by none. Whoever moves it may
-- be killed between the two; then any process that reaches both cells ends the switch. What lets it is a secret: the
-- mover gives it to the target once both cells are equal, and the source tells it once it has said, by the same
-- statement, that the tenant departed. So the source alone decides, by one row: a target is here only where that hold
-- of writes ended in a departure.

-- The directory, in the home cell: in which cell a tenant is that is not at home, or once was not. A tenant that it
-- does not name is at home. Its id is not called tenant_id: these rows are the service's, and stay where the tenant
-- moves.
CREATE TABLE tenant_cells (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    cell text NOT NULL CHECK (cell ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$'),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE tenant_cells ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_cells TO recollect_operator USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_cells TO recollect_operator;

-- The moves that are under way, in the home cell: each step is noted before it is done, so that another can go on
-- with it. The id is the tenant's. It is not called tenant_id: the row is the service's, and does not move.
CREATE TABLE tenant_moves (
    id uuid PRIMARY KEY,
    slug text NOT NULL,
    source text NOT NULL,
    target text NOT NULL CHECK (target <> source),
    step text NOT NULL CHECK (step IN ('prepare', 'copy', 'hold', 'check', 'switch', 'clean', 'undo')),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    step_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE tenant_moves ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_moves TO recollect_operator USING (true);
GRANT SELECT ON tenant_moves TO recollect_operator;

-- What this cell says of these tenants, whom it may serve or not, or of those whose credential has one of these keyed
-- hashes: asked where no cell finds a credential, so that nobody is told that it does not hold while its tenant is
-- between two cells.
CREATE FUNCTION find_places(tenant_ids uuid[], slugs text[], secret_hashes bytea[])
RETURNS TABLE (place text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.place FROM tenants t WHERE t.id IN (
        SELECT unnest(tenant_ids)
        UNION ALL SELECT n.id FROM tenants n WHERE n.slug = ANY (slugs)
        UNION ALL SELECT k.tenant_id FROM api_keys k WHERE k.hash = ANY (secret_hashes)
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = ANY (secret_hashes)
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = ANY (secret_hashes)
        UNION ALL SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = ANY (secret_hashes)
        UNION ALL SELECT i.tenant_id FROM invitations i WHERE i.hash = ANY (secret_hashes)
        UNION ALL SELECT p.tenant_id FROM provider_sign_ins p WHERE p.hash = ANY (secret_hashes)
        UNION ALL SELECT s.confined_to FROM sessions s WHERE s.hash = ANY (secret_hashes)
    )
    LIMIT 200
$$;

-- In which cell these tenants are, as far as the directory names them; asked before a tenant is known.
CREATE FUNCTION find_cells(tenants uuid[], slugs text[])
RETURNS TABLE (tenant_id uuid, slug text, cell text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT c.id, c.slug, c.cell FROM tenant_cells c WHERE c.id = ANY (find_cells.tenants) OR c.slug = ANY (slugs)
    ORDER BY c.slug
    LIMIT 200
$$;

-- What a cell says of a tenant that is leaving, or has left, stays as it is: the other cell has it from there. What an
-- operator changes of one whose hold is over has it be here again. A hold may be renewed.
CREATE FUNCTION keep_moving_tenant()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF (to_jsonb(OLD) - 'held_until') = (to_jsonb(NEW) - 'held_until') THEN
        RETURN NEW;
    ELSIF OLD.place = 'leaving' AND OLD.held_until <= clock_timestamp() THEN
        NEW.place := 'here';
        NEW.held_until := NULL;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
END $$;

-- How many rows of each table are a tenant's, and the sum of what 64 bits of each row's MD5 say: equal in two cells
-- where the rows are, in whichever order they were read. The tenant's own row counts without what differs between two
-- cells: its place, that it moves, until when one of them holds the writes, and what a switch needs.
CREATE FUNCTION digest_of_tenant(tenant uuid)
RETURNS TABLE (name text, total bigint, digest numeric)
LANGUAGE plpgsql STABLE SET search_path = recollect, public, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' SET extra_float_digits = 1
AS $$
DECLARE
    of_place text[] := ARRAY['place', 'moving', 'held_until', 'switch_secret', 'departed_to'];
BEGIN
    name := 'tenants';
    SELECT count(*), sum(('x' || left(md5((to_jsonb(t) - of_place)::text), 16))::bit(64)::bigint) INTO total, digest
    FROM tenants t WHERE t.id = tenant;
    RETURN NEXT;
    FOREACH name IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'SELECT count(*), sum((''x'' || left(md5(r::text), 16))::bit(64)::bigint) FROM %I r WHERE r.tenant_id = $1',
            name) INTO total, digest USING tenant;
        RETURN NEXT;
    END LOOP;
END $$;

-- Delete so many rows at most of a tenant that is not served here, because it is still arriving or has departed;
-- whether none is left. Never of one that is here, nor while what is deleted here would be deleted in the other cell.
-- The rows go as a replica's do, without triggers and checks: all of them go.
CREATE FUNCTION erase_moved_step(tenant uuid, most bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = auto
AS $$
DECLARE
    found_place text;
    theirs text;
    gone bigint;
    room bigint := most;
BEGIN
    SELECT t.place INTO found_place FROM tenants t WHERE t.id = tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN true;
    ELSIF found_place NOT IN ('arriving', 'departed') THEN
        RAISE EXCEPTION 'the tenant is here' USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF EXISTS (SELECT 1 FROM pg_publication WHERE pubname = 'recollect_move_' || replace(tenant::text, '-', '')) THEN
        RAISE EXCEPTION 'the rows of the tenant are being copied' USING ERRCODE = 'object_in_use';
    END IF;
    PERFORM set_config('session_replication_role', 'replica', true);
    FOREACH theirs IN ARRAY tables_of_tenants() LOOP
        EXECUTE format(
            'DELETE FROM %1$I WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
            SELECT ctid FROM %1$I WHERE tenant_id = $1 LIMIT $2))', theirs) USING tenant, room;
        GET DIAGNOSTICS gone = ROW_COUNT;
        room := room - gone;
        EXIT WHEN room <= 0;
    END LOOP;
    PERFORM set_config('session_replication_role', 'origin', true);
    IF room > 0 THEN
        DELETE FROM sessions s WHERE s.confined_to = tenant;
        DELETE FROM people p WHERE p.provider_tenant_id = tenant;
        DELETE FROM tenants t WHERE t.id = tenant;
    END IF;
    RETURN room > 0;
END $$;

-- Have a tenant be here again whose hold is over; whether it is here. Whoever asks holds the lock of those who write,
-- which a move takes alone when it begins a hold, and when it ends one by the tenant's departure.
CREATE FUNCTION end_hold(tenant uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    UPDATE tenants t SET place = 'here', held_until = NULL
    WHERE t.id = tenant AND t.place = 'leaving' AND t.held_until <= clock_timestamp();
    RETURN EXISTS (SELECT FROM tenants t WHERE t.id = tenant AND t.place = 'here');
END $$;

-- How many moves of tenants are at each step, and for how long the oldest of them has been: what the gauges of home's
-- workers tell. Numbers only, none of a tenant; nothing is noted in other cells.
CREATE FUNCTION moves_under_way()
RETURNS TABLE (step text, moves bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.step, count(m.id),
        coalesce(greatest(extract(epoch FROM statement_timestamp() - min(m.step_at)), 0), 0)::double precision
    FROM unnest(ARRAY['prepare', 'copy', 'hold', 'check', 'switch', 'clean', 'undo']) AS s (step)
    LEFT JOIN tenant_moves m ON m.step = s.step
    GROUP BY s.step
$$;

-- Of these tenants, or of those whose credential has one of these keyed hashes: who has departed from here, where to,
-- and the secret; not until whoever moves them should have ended the switch (held_until).
CREATE FUNCTION find_departures(tenant_ids uuid[], slugs text[], secret_hashes bytea[])
RETURNS TABLE (tenant_id uuid, departed_to text, switch_secret uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, t.departed_to, t.switch_secret FROM tenants t
    WHERE t.place = 'departed' AND t.switch_secret IS NOT NULL AND t.held_until <= clock_timestamp() AND t.id IN (
        SELECT unnest(tenant_ids)
        UNION ALL SELECT n.id FROM tenants n WHERE n.slug = ANY (slugs)
        UNION ALL SELECT k.tenant_id FROM api_keys k WHERE k.hash = ANY (secret_hashes)
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = ANY (secret_hashes)
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = ANY (secret_hashes)
        UNION ALL SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = ANY (secret_hashes)
        UNION ALL SELECT i.tenant_id FROM invitations i WHERE i.hash = ANY (secret_hashes)
        UNION ALL SELECT p.tenant_id FROM provider_sign_ins p WHERE p.hash = ANY (secret_hashes)
        UNION ALL SELECT s.confined_to FROM sessions s WHERE s.hash = ANY (secret_hashes)
    )
    LIMIT 200
$$;

-- Have a tenant be here that arrives and whose secret this is; whether it is here then. Sessions of its own providers
-- end: a password that was changed meanwhile ended some of them, and only the mover finds out which.
CREATE FUNCTION end_switch(tenant uuid, secret uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
BEGIN
    UPDATE tenants t SET place = 'here', switch_secret = NULL
    WHERE t.id = tenant AND t.place = 'arriving' AND t.switch_secret = secret;
    IF FOUND THEN
        UPDATE sessions s SET revoked_at = clock_timestamp() WHERE s.confined_to = tenant AND s.revoked_at IS NULL;
    END IF;
    RETURN EXISTS (SELECT FROM tenants t WHERE t.id = tenant AND t.place IN ('here', 'leaving'));
END $$;

-- Have the directory name the cell to which a tenant moves, which is here there; nothing where that move has not come
-- so far, or is over, and another one has begun.
CREATE FUNCTION follow_move(tenant uuid, moved_to text)
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    INSERT INTO tenant_cells AS c (id, slug, cell)
    SELECT m.id, m.slug, m.target FROM tenant_moves m WHERE m.id = tenant AND m.target = moved_to AND m.step = 'switch'
    ON CONFLICT (id) DO UPDATE SET cell = EXCLUDED.cell, since = clock_timestamp() WHERE c.cell <> EXCLUDED.cell
$$;

-- A switch that nobody ended is ended by the next call of its tenant. Of a tenant that nobody calls, a worker of home
-- does so.
-- Tenants whose move was noted to switch, and which the directory does not follow yet, and from which cell each was
-- to depart: the oldest first, 100 at most. Whether one has departed, and where to, its source alone tells
-- (find_departures).
CREATE FUNCTION list_open_switches(most bigint)
RETURNS TABLE (tenant_id uuid, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT m.id, m.source FROM tenant_moves m
    WHERE m.step = 'switch' AND NOT EXISTS (SELECT FROM tenant_cells c WHERE c.id = m.id AND c.cell = m.target)
    ORDER BY m.step_at, m.id
    LIMIT least(most, 100)
$$;

CREATE TRIGGER keep_moving BEFORE UPDATE ON tenants FOR EACH ROW
    WHEN (OLD.place IN ('leaving', 'departed') AND NEW.place = OLD.place AND NEW IS DISTINCT FROM OLD)
    EXECUTE FUNCTION keep_moving_tenant();

-- Which tenants have work of a kind for the worker, and how much waits: ids and numbers only. The functions run as
-- their owner, since no tenant is known yet. Each takes and returns no more than its one purpose needs, and has an
-- attack test.

-- Tenants whose passages wait for the worker: ids only.
CREATE FUNCTION tenants_with_pending_passages()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, public, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND NOT p.settled AND p.removed_revision IS NULL
    )
$$;

-- Tenants that have a job to be worked on or to be removed: ids only. Jobs of a tenant that is read-only wait.
CREATE FUNCTION tenants_with_due_jobs()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND NOT t.read_only AND t.id IN (
        SELECT j.tenant_id FROM jobs j
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT j.tenant_id FROM jobs j WHERE j.expires_at <= statement_timestamp()
    )
    ORDER BY t.id
$$;

-- Nodes or observations whose time has come and that are not archived, or taken away, yet.
CREATE FUNCTION tenants_with_expired()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND (EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.expires_at <= statement_timestamp() AND n.removed_revision IS NULL
            AND n.status <> 'archived'
    ) OR EXISTS (
        SELECT 1 FROM observations o
        WHERE o.tenant_id = t.id AND o.expires_at <= statement_timestamp() AND o.removed_revision IS NULL
    ))
$$;

-- Graphs whose configuration asks for duplicates, and that were not compared for as long as it says. The
-- configuration is text of tenants: whatever it holds, it must not fail here (numeric takes every number of JSON).
CREATE FUNCTION tenants_with_deduplication_due()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM graphs g
        LEFT JOIN deduplications d ON d.tenant_id = g.tenant_id AND d.graph_id = g.id
        WHERE g.tenant_id = t.id AND g.metadata #>> '{dedup,mode}' IN ('propose', 'merge')
            AND (d.finished_at IS NULL OR d.finished_at <= statement_timestamp() - interval '1 hour' * CASE
                WHEN jsonb_typeof(g.metadata #> '{dedup,every_hours}') = 'number'
                THEN least(greatest((g.metadata #>> '{dedup,every_hours}')::numeric, 1), 8760)::double precision ELSE 24 END)
    )
$$;

-- Tenants that have facts to be related, and embedded: ids only.
CREATE FUNCTION tenants_with_autolinks()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM autolinks a
        WHERE a.tenant_id = t.id AND NOT EXISTS (
            SELECT 1 FROM passages p
            WHERE p.tenant_id = a.tenant_id AND p.node_id = a.node_id AND p.removed_revision IS NULL AND NOT p.settled
        )
    )
$$;

-- Tenants with archived nodes that expired longer ago than the tenant keeps them, or than this where it does not say;
-- ids only. What a relation ties to something that lives is among them, though it stays.
CREATE FUNCTION tenants_with_purgeable(retention interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM nodes n
        WHERE n.tenant_id = t.id AND n.removed_revision IS NULL AND n.status = 'archived'
            AND n.expires_at < statement_timestamp() - coalesce(make_interval(secs => t.retention_days * 86400), retention)
    )
$$;

-- Tenants with graphs whose turn has come to be looked at: ids only.
CREATE FUNCTION tenants_with_compaction_to_check()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM graphs g WHERE g.tenant_id = t.id AND g.compaction_check_at <= statement_timestamp()
    )
$$;

-- Tenants with usage that is older than it is kept, ids only.
CREATE FUNCTION tenants_with_old_usage(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM usage_hourly u WHERE u.tenant_id = t.id AND u.hour < statement_timestamp() - kept
    )
$$;

-- Tenants that may have something to tell a webhook: ids only. What was found a while ago is looked at again, since a
-- transaction may commit later than the time that it wrote. A graph has one cursor of a webhook, which is looked up
-- for each graph that was written or erased, and graphs are read in the order in which they were written, whatever
-- PostgreSQL knows of these tables: hence the two settings and OFFSET 0. A webhook that has more to collect than one
-- look takes keeps its looked_at.
CREATE FUNCTION tenants_with_webhook_news(overlap interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp SET enable_seqscan = off
SET enable_sort = off
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhooks w
        WHERE w.tenant_id = t.id AND w.enabled AND (
            w.event_types && '{graph.changed,graph.created,graph.deleted}'::text[] AND (
                EXISTS (
                    SELECT 1 FROM (
                        SELECT g.tenant_id, g.graph_id, g.revision FROM graph_heads g
                        WHERE g.tenant_id = w.tenant_id
                            AND g.written_around > w.looked_at - overlap - interval '1 minute'
                        ORDER BY g.tenant_id, g.written_around
                        OFFSET 0
                    ) h
                    WHERE (w.graph_ids IS NULL OR h.graph_id = ANY (w.graph_ids))
                        AND h.revision > coalesce((
                            SELECT CASE WHEN 'graph.changed' = ANY (w.event_types) THEN c.revision ELSE h.revision END
                            FROM webhook_cursors c
                            WHERE c.tenant_id = h.tenant_id AND c.webhook_id = w.id AND c.graph_id = h.graph_id
                        ), -1)
                ) OR EXISTS (
                    SELECT 1 FROM audit_log a
                    WHERE a.tenant_id = w.tenant_id AND a.at > w.looked_at - overlap AND a.action = 'graph.erased' AND (
                        SELECT true FROM webhook_cursors c
                        WHERE c.tenant_id = a.tenant_id AND c.webhook_id = w.id
                            AND c.graph_id = substr(a.objects[1], length('graph:') + 1)::uuid
                    )
                )
            )
            OR w.event_types && '{job.finished,job.failed}'::text[] AND EXISTS (
                SELECT 1 FROM jobs j WHERE j.tenant_id = w.tenant_id AND j.finished_at > w.looked_at - overlap
            )
            OR w.event_types && '{key.created,key.revoked}'::text[] AND EXISTS (
                SELECT 1 FROM api_keys k
                WHERE k.tenant_id = w.tenant_id
                    AND (k.created_at > w.looked_at - overlap OR k.revoked_at > w.looked_at - overlap)
            )
            OR 'member.joined' = ANY (w.event_types) AND EXISTS (
                SELECT 1 FROM members m WHERE m.tenant_id = w.tenant_id AND m.created_at > w.looked_at - overlap
            )
            OR 'member.removed' = ANY (w.event_types) AND EXISTS (
                SELECT 1 FROM audit_log a
                WHERE a.tenant_id = w.tenant_id AND a.at > w.looked_at - overlap AND a.action = 'member.removed'
            )
        )
    )
    ORDER BY t.id
$$;

-- Tenants that have a delivery to be sent now: ids only.
CREATE FUNCTION tenants_with_due_deliveries()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhooks w
        JOIN webhook_deliveries d ON d.tenant_id = w.tenant_id AND d.webhook_id = w.id
        WHERE w.tenant_id = t.id AND w.enabled AND d.next_attempt_at <= statement_timestamp()
            AND (d.claimed_until IS NULL OR d.claimed_until < statement_timestamp())
    )
    ORDER BY t.id
$$;

-- Tenants with deliveries that are older than they are kept: ids only.
CREATE FUNCTION tenants_with_old_deliveries(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM webhook_deliveries d WHERE d.tenant_id = t.id AND d.created_at < statement_timestamp() - kept
    )
    ORDER BY t.id
$$;

-- Active tenants with entries that are older than they are kept, ids only.
CREATE FUNCTION tenants_with_old_audit(kept interval)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM audit_log a WHERE a.tenant_id = t.id AND a.at < statement_timestamp() - kept
    )
$$;

-- Active tenants with keys that have expired, ids only.
CREATE FUNCTION tenants_with_expired_idempotency_keys()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM idempotency_keys k WHERE k.tenant_id = t.id AND k.expires_at <= statement_timestamp()
    )
$$;

-- For each queue: how many wait, counted up to `most`, and how long the oldest has waited, in seconds. What suspended
-- tenants have does not wait for a worker. An id of a passage (UUIDv7) begins with the milliseconds at which it was
-- made.
CREATE FUNCTION waiting_work(most bigint)
RETURNS TABLE (queue text, waiting bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    WITH due AS (
        SELECT 'jobs' AS queue, j.next_attempt_at AS since
        FROM jobs j
        JOIN tenants_staying t ON t.id = j.tenant_id AND t.status = 'active'
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT 'deliveries', d.next_attempt_at
        FROM webhook_deliveries d
        JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND w.enabled
        JOIN tenants_staying t ON t.id = d.tenant_id AND t.status = 'active'
        WHERE d.next_attempt_at <= statement_timestamp()
            AND (d.claimed_until IS NULL OR d.claimed_until < statement_timestamp())
    ), counted AS (
        SELECT 'passages' AS queue, (
            SELECT count(*) FROM (
                SELECT 1 FROM passages p
                JOIN tenants_staying t ON t.id = p.tenant_id AND t.status = 'active'
                WHERE NOT p.settled AND p.embedding_model IS NULL AND p.removed_revision IS NULL
                LIMIT most
            ) AS found
        ) AS waiting, (
            SELECT to_timestamp(min(('x' || left(replace(first.id::text, '-', ''), 12))::bit(48)::bigint) / 1000.0)
            FROM tenants_staying t
            CROSS JOIN LATERAL (
                SELECT p.id FROM passages p
                WHERE p.tenant_id = t.id AND NOT p.settled AND p.embedding_model IS NULL AND p.removed_revision IS NULL
                ORDER BY p.id LIMIT 1
            ) AS first
            WHERE t.status = 'active'
        ) AS since
        UNION ALL
        SELECT q.queue, (SELECT count(*) FROM (SELECT 1 FROM due d WHERE d.queue = q.queue LIMIT most) AS found),
            (SELECT min(d.since) FROM due d WHERE d.queue = q.queue)
        FROM (VALUES ('jobs'), ('deliveries')) AS q (queue)
    )
    SELECT c.queue, c.waiting,
        coalesce(greatest(extract(epoch FROM statement_timestamp() - c.since), 0), 0)::double precision
    FROM counted c
$$;

-- Tenants with labels or passages to analyse anew: ids only.
CREATE FUNCTION tenants_with_other_words()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND (
        EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND p.words_version < 4)
        OR EXISTS (
            SELECT 1 FROM nodes n
            WHERE n.tenant_id = t.id AND n.labels_version < 2 AND n.removed_revision IS NULL
                AND (n.summary IS NOT NULL OR n.tags <> '{}')
        )
    )
$$;

-- What these tenants use of what plans limit, for the pages of operators: numbers only, of 200 tenants at most.
-- day: the midnight (UTC) at which the day began whose embeddings count.
CREATE FUNCTION use_of_tenants(tenant_ids uuid[], day timestamptz)
RETURNS TABLE (tenant_id uuid, graphs bigint, nodes_per_graph bigint, observations bigint, stored_bytes bigint,
    embeddings_per_day bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id, stored.graphs, stored.nodes, stored.observations, stored.bytes, embedded.passages
    FROM tenants_here t
    CROSS JOIN LATERAL (
        SELECT count(*) AS graphs, coalesce(max(h.entities + h.facts + h.placeholders), 0)::bigint AS nodes,
            coalesce(sum(h.observations), 0)::bigint AS observations,
            coalesce(sum(counted_bytes(h)), 0)::bigint AS bytes
        FROM graph_heads h WHERE h.tenant_id = t.id
    ) AS stored
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(u.passages), 0)::bigint AS passages FROM usage_hourly u
        WHERE u.tenant_id = t.id AND u.hour >= day AND u.hour < day + interval '1 day' AND u.kind = 'work'
            AND u.name = 'embed_passages'
    ) AS embedded
    WHERE t.id = ANY (tenant_ids[1:200])
$$;

-- Jobs of all tenants that failed since then, by their kind and the code of the error, the most frequent first: numbers
-- only. The application can store any text as a code; one that is no code is left out.
CREATE FUNCTION failed_work(since timestamptz)
RETURNS TABLE (kind text, error_code text, failed bigint, last_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT j.kind, CASE WHEN j.error_code ~ '^[a-z0-9_]{1,64}$' THEN j.error_code ELSE '' END, count(*),
        max(j.finished_at)
    FROM tenants_here t
    JOIN jobs j ON j.tenant_id = t.id AND j.status = 'failed' AND j.finished_at >= since
    GROUP BY 1, 2
    ORDER BY 3 DESC, 1, 2
    LIMIT 100
$$;

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

-- The version of the schema.

-- Of these migrations, those that this database lacks.
CREATE FUNCTION missing_migrations(wanted text[])
RETURNS TABLE (name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT w.name FROM unnest(wanted) AS w (name)
    WHERE NOT EXISTS (SELECT FROM schema_migrations m WHERE m.name = w.name)
    ORDER BY w.name
$$;

-- What the roles may execute; what they may do with a table or view stands with it. No function is everybody's: a new
-- one needs its grant here, or only the owner may call it. PostgreSQL tests this right also for functions within a
-- query. recollect_maintenance is a member of the owner, and needs none.

GRANT USAGE ON SCHEMA recollect TO recollect_app, recollect_operator;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recollect FROM PUBLIC;

-- The application: gateway and worker. PostgreSQL puts no function into a query whose role may not call it.
GRANT EXECUTE ON FUNCTION -- planner
    as_filter,
    is_current,
    is_current_at,
    is_live,
    is_live_at,
    same_key(bigint, bigint),
    same_key(text, text),
    same_key(uuid, uuid)
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- tenants
    lock_writes,
    require_graph,
    require_here,
    require_served,
    require_writable
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- graphs
    next_index_epoch
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- api_keys
    find_api_key,
    forget_void_key
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- identity_providers
    find_email_domain,
    find_identity_providers,
    find_provider_sign_in,
    find_trusted_issuer,
    list_trusted_issuers,
    release_email_domain
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- people
    delete_account,
    end_own_sign_ins,
    find_invitation,
    find_passkey,
    find_password_reset,
    find_person,
    find_session,
    find_tenant_accounts,
    forget_void_invitation,
    keep_passkey_challenge,
    list_memberships,
    list_own_identities,
    prove_own_address,
    take_passkey_challenge
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- oauth
    add_signing_key,
    find_oauth_access_token,
    find_oauth_client,
    find_oauth_tenant,
    keep_oauth_client,
    list_own_grants,
    list_signing_keys,
    touch_oauth_client
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- audit
    forget_audit
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- names
    folded_name,
    holds(text, text, text),
    holds(text, text[], text[]),
    is_decomposed,
    joined,
    label_words,
    look_alike_key,
    name_key,
    plain_apostrophes,
    plain_text
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- nodes
    edges_between_names,
    english_labels,
    entities_named,
    forms_of,
    has_unusual_nodes,
    is_node_shown,
    is_word_in_use,
    memory_labels,
    node_created_at,
    nodes_named,
    similar_words
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- stored_bytes
    bytes_of(node_versions),
    bytes_of(observations),
    bytes_of(relations),
    counted_bytes,
    row_bytes_of(aliases),
    row_bytes_of(node_versions),
    row_bytes_of(nodes),
    row_bytes_of(observations),
    row_bytes_of(relations)
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- passages
    count_waiting,
    count_words,
    next_expiry,
    passages_after,
    passages_before,
    passages_beside,
    said_within,
    unlabelled
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- history
    changed_at,
    children_at,
    forms_at,
    named_at,
    node_at,
    nodes_at,
    observations_at,
    relations_at,
    version_at
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- search
    entities_of,
    entity_of,
    statements_about,
    statements_of,
    words_of(node_versions),
    words_of(observations)
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- recall
    find_by_alias,
    find_by_words,
    find_naming_days,
    find_nearest,
    find_nearest_of_kind,
    kinds_of_vectors,
    find_said_within
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- cells
    end_hold,
    end_switch,
    find_cells,
    find_departures,
    find_places,
    follow_move,
    list_open_switches,
    moves_under_way
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- worker
    tenants_with_autolinks,
    tenants_with_compaction_to_check,
    tenants_with_deduplication_due,
    tenants_with_due_deliveries,
    tenants_with_due_jobs,
    tenants_with_expired,
    tenants_with_expired_idempotency_keys,
    tenants_with_old_audit,
    tenants_with_old_deliveries,
    tenants_with_old_usage,
    tenants_with_other_words,
    tenants_with_pending_passages,
    tenants_with_purgeable,
    tenants_with_webhook_news,
    waiting_work
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- erasure
    delete_requested_tenant,
    erase_tenant_step,
    forget_statistics,
    tenants_to_erase,
    tenants_with_due_deletion
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- versions
    missing_migrations
TO recollect_app;

-- The operator API.
GRANT EXECUTE ON FUNCTION -- tenants
    lock_writes
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- operators
    begin_operator_session,
    end_operator_session,
    find_operator_key,
    find_operator_session
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- worker
    failed_work,
    use_of_tenants,
    waiting_work
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- erasure
    count_of_tenant,
    erase_tenant_step,
    forget_statistics,
    withdraw_deletion_request
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- versions
    missing_migrations
TO recollect_operator;

-- What psql says of each table and view (\d+): one sentence; the files of this folder say more.

COMMENT ON SCHEMA recollect IS 'Recollect: memory for AI agents. Tables of tenants have tenant_id first in their keys.';

COMMENT ON TABLE plans IS 'What a tenant may have and ask for; null is no limit.';
COMMENT ON TABLE tenants IS 'The organisations that are served.';
COMMENT ON VIEW tenants_here IS 'The tenants that this cell serves.';
COMMENT ON VIEW tenants_staying IS 'The tenants that this cell serves and writes for.';
COMMENT ON TABLE usage_hourly IS 'Calls, errors, durations, embedded passages and bytes of each tenant, by hour.';

COMMENT ON TABLE graphs IS 'The graphs of a tenant and their settings.';
COMMENT ON TABLE graph_heads IS 'One row a graph: the write lock, the newest revision, and counts of what is live.';
COMMENT ON TABLE graph_indexes IS 'One row a graph: its embedding model, vector index and the epoch of search caches.';
COMMENT ON TABLE changes IS 'The ordered log of a graph: operations, by whom and on which ids; never stored text.';

COMMENT ON TABLE api_keys IS 'API keys, by keyed hash.';

COMMENT ON TABLE identity_providers IS 'OpenID providers by which members of a tenant sign in.';
COMMENT ON TABLE provider_sign_ins IS 'Sign-ins under way with a provider.';
COMMENT ON TABLE trusted_issuers IS 'Issuers whose access tokens a tenant accepts, and what each token may do.';
COMMENT ON TABLE email_domains IS 'E-mail domains that a tenant claims or has proven.';

COMMENT ON TABLE people IS 'People and their passwords. A person is of no tenant, and may be a member of several.';
COMMENT ON TABLE sessions IS 'Sign-ins of people, by hash.';
COMMENT ON TABLE password_resets IS 'Links by which people take another password, by hash.';
COMMENT ON TABLE passkeys IS 'Passkeys of people.';
COMMENT ON TABLE passkey_challenges IS 'What a browser is asked to sign, once.';
COMMENT ON TABLE members IS 'Who is a member of which tenant, and in which role.';
COMMENT ON TABLE provider_identities IS 'Who a member is at an identity provider.';
COMMENT ON TABLE invitations IS 'Invitations to join a tenant, by hash.';

COMMENT ON TABLE oauth_clients IS 'OAuth clients that registered, or publish a document about themselves.';
COMMENT ON TABLE oauth_grants IS 'What a person lets a client do at one resource.';
COMMENT ON TABLE oauth_codes IS 'Authorization codes, by hash; each is used once.';
COMMENT ON TABLE oauth_access_tokens IS 'Access tokens, by hash.';
COMMENT ON TABLE oauth_refresh_tokens IS 'Refresh tokens, by hash; each is used once.';
COMMENT ON TABLE signing_keys IS 'Keys that sign ID tokens; the private parts are encrypted.';

COMMENT ON TABLE audit_log IS 'Who did what in a tenant; append-only.';
COMMENT ON TABLE webhooks IS 'Webhooks of a tenant.';
COMMENT ON TABLE webhook_cursors IS 'The revision of each graph up to which a webhook was told.';
COMMENT ON TABLE webhook_deliveries IS 'Events for webhooks: to be delivered, or delivered lately.';
COMMENT ON TABLE idempotency_keys IS 'Answers to calls that carried an idempotency key.';

COMMENT ON TABLE nodes IS 'The newest version of each entity, fact or placeholder, or the tombstone of a deleted one.';
COMMENT ON TABLE node_versions IS 'Every version of every node, with every field.';
COMMENT ON TABLE aliases IS 'Names that entities had before a merge.';
COMMENT ON TABLE observations IS 'Statements about an entity; each row is a version.';
COMMENT ON TABLE relations IS 'Directed, typed edges between nodes.';
COMMENT ON VIEW versions IS 'node_versions with the beginning of each lineage, and the versions in conflict with it.';
COMMENT ON VIEW search_nodes IS 'Nodes of the tenant, without row-level security, so that indexes of words serve.';
COMMENT ON VIEW search_observations IS 'Observations of the tenant, as search_nodes.';
COMMENT ON VIEW search_aliases IS 'Aliases of the tenant, as search_nodes.';
COMMENT ON VIEW search_passages IS 'Passages of the tenant, as search_nodes.';
COMMENT ON VIEW search_terms IS 'Words of the tenant''s graphs, as search_nodes.';

COMMENT ON TABLE passages IS 'Pieces of text that are searched; derived from nodes and observations, and rebuildable.';
COMMENT ON TABLE passage_vectors IS 'What each passage means by itself, by model.';
COMMENT ON TABLE searched_vectors IS 'The vector by which each passage is searched; 16 partitions by tenant.';
COMMENT ON TABLE passage_evidence IS 'Tokens and dates of passages, by which candidates are ranked.';
COMMENT ON TABLE terms IS 'In how many passages of a graph each word stands.';

COMMENT ON TABLE jobs IS 'Work of the worker that takes long, with its state, progress and result.';
COMMENT ON TABLE job_inputs IS 'What a job reads, in chunks.';
COMMENT ON TABLE job_outputs IS 'What a job leaves to be fetched, in chunks.';
COMMENT ON TABLE duplicates IS 'Pairs of entities that are alike and were left as they are.';
COMMENT ON TABLE dismissals IS 'Pairs of entities that somebody said are different, and who.';
COMMENT ON TABLE deduplications IS 'When the entities of a graph were last compared.';
COMMENT ON TABLE autolinks IS 'New facts that wait to be related to what they are like.';

COMMENT ON TABLE operator_keys IS 'Keys of operators, by keyed hash.';
COMMENT ON TABLE operator_sessions IS 'Sessions of operators at their pages, by keyed hash.';
COMMENT ON TABLE operator_log IS 'What operators did; append-only.';
COMMENT ON TABLE deletion_requests IS 'That an owner asked for the deletion of their organisation, and when it is due.';
COMMENT ON TABLE tenant_deletions IS 'Tenants that were deleted and are not erased yet.';
COMMENT ON TABLE erasure_receipts IS 'What is left of a tenant that was erased; append-only.';
COMMENT ON TABLE tenant_cells IS 'In which cell a tenant is that is not in the home cell.';
COMMENT ON TABLE tenant_moves IS 'Moves of tenants between cells that are under way.';
COMMENT ON TABLE language_models IS 'The language model of a tenant''s own, which distils facts from conversations.';
COMMENT ON TABLE distilled_threads IS 'Threads that were distilled, and up to which turn.';
COMMENT ON TABLE derived_facts IS 'Facts that a language model derived, with the turns that they rest on.';
