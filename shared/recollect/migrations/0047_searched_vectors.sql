-- What passages are searched by in meaning, apart from what else is known of them.

-- The vector of each passage that its neighbours share in, by which it is searched; `passage_vectors` has what each means
-- by itself. A row is written when the vector is another, and never when words, windows or a claim of its passage change:
-- every update of a row writes each index of its table anew, and one of a vector index takes milliseconds. model: as
-- passages.embedding_model, which is null where a passage has no row here. live: whether its passage was not removed; not
-- live are those that serve the past, which no index holds. It may lag behind: what is live, passages say.
-- By tenant into 16 tables, each with the vector indexes of its tenants' large graphs: PostgreSQL looks at every index of
-- a table for each statement that it plans on it, and for each row that is written there.
CREATE TABLE searched_vectors (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    live boolean NOT NULL DEFAULT true,
    PRIMARY KEY (tenant_id, passage_id)
) PARTITION BY HASH (tenant_id);
CREATE INDEX searched_vectors_graph ON searched_vectors (tenant_id, graph_id) WHERE live;
-- An exact scan that had to fetch each vector from out of line would be several times slower.
ALTER TABLE searched_vectors ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE searched_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON searched_vectors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON searched_vectors TO recollect_app;

-- Nobody is granted anything on a part itself, and each is under the policy none the less. The planner has no use for
-- samples of vectors, and what is erased would stand in them.
DO $$
DECLARE
    part text;
BEGIN
    FOR remainder IN 0..15 LOOP
        part := 'searched_vectors_' || to_char(remainder, 'FM00');
        EXECUTE format('CREATE TABLE %I PARTITION OF searched_vectors FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            part, remainder);
        EXECUTE format('ALTER TABLE %I SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000)', part);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STATISTICS 0', part);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY tenant_isolation ON %I
            USING (tenant_id = (SELECT nullif(current_setting(''recollect.tenant_id'', true), '''')::uuid))', part);
    END LOOP;
END
$$;

-- Until the last process of the version before has ended, it keeps these vectors in passages, as it always did: they are
-- taken over from there as they change. Nothing of this version writes one there. Column and triggers go in a later one.
CREATE FUNCTION take_over_vector() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, public, pg_temp
AS $$
BEGIN
    IF NEW.embedding IS NOT NULL THEN
        INSERT INTO searched_vectors (tenant_id, graph_id, passage_id, model, embedding, live)
        VALUES (NEW.tenant_id, NEW.graph_id, NEW.id, NEW.embedding_model, NEW.embedding, NEW.removed_revision IS NULL)
        ON CONFLICT (tenant_id, passage_id) DO UPDATE SET model = excluded.model, embedding = excluded.embedding;
    ELSIF NEW.embedding_model IS NULL THEN
        DELETE FROM searched_vectors WHERE tenant_id = NEW.tenant_id AND passage_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION take_over_vector() FROM PUBLIC;
CREATE TRIGGER take_over_new_vector AFTER INSERT ON passages FOR EACH ROW
    WHEN (NEW.embedding IS NOT NULL) EXECUTE FUNCTION take_over_vector();
CREATE TRIGGER take_over_changed_vector AFTER UPDATE OF embedding ON passages FOR EACH ROW
    WHEN (NEW.embedding IS NOT NULL OR OLD.embedding IS NOT NULL) EXECUTE FUNCTION take_over_vector();

-- Counted, too, by what tells whether a passage has a vector, wherever that is. While it is made, writing passages waits.
-- What the version before counts by, passages_waiting, goes in a later one.
CREATE INDEX passages_unembedded ON passages (tenant_id, graph_id)
    WHERE NOT settled AND embedding_model IS NULL AND removed_revision IS NULL;

-- For each queue: how many wait, counted up to `most`, and how long the oldest has waited, in seconds. What suspended
-- tenants have does not wait for a worker. An id of a passage (UUIDv7) begins with the milliseconds at which it was made.
CREATE OR REPLACE FUNCTION waiting_work(most bigint)
RETURNS TABLE (queue text, waiting bigint, oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    WITH due AS (
        SELECT 'jobs' AS queue, j.next_attempt_at AS since
        FROM jobs j
        JOIN tenants t ON t.id = j.tenant_id AND t.status = 'active'
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT 'deliveries', d.next_attempt_at
        FROM webhook_deliveries d
        JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND w.enabled
        JOIN tenants t ON t.id = d.tenant_id AND t.status = 'active'
        WHERE d.next_attempt_at <= statement_timestamp()
            AND (d.claimed_until IS NULL OR d.claimed_until < statement_timestamp())
    ), counted AS (
        SELECT 'passages' AS queue, (
            SELECT count(*) FROM (
                SELECT 1 FROM passages p
                JOIN tenants t ON t.id = p.tenant_id AND t.status = 'active'
                WHERE NOT p.settled AND p.embedding_model IS NULL AND p.removed_revision IS NULL
                LIMIT most
            ) AS found
        ) AS waiting, (
            SELECT to_timestamp(min(('x' || left(replace(first.id::text, '-', ''), 12))::bit(48)::bigint) / 1000.0)
            FROM tenants t
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
