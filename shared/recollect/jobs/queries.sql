-- name: tenants_with_due
-- Tenants that have a job to be worked on or to be removed; asked without a tenant.
SELECT tenant_id FROM tenants_with_due_jobs();

-- name: find_equal
-- The job under way that an equal one would double.
SELECT id FROM jobs WHERE tenant_id = :tenant_id AND digest = :digest AND finished_at IS NULL;

-- name: insert_job
-- A new job, unless an equal one is under way or :max_open are already. One that is held goes after :held_for if nobody
-- starts it.
INSERT INTO jobs (tenant_id, id, graph_id, kind, digest, arguments, cursor, total, held, traceparent, created_by, expires_at)
SELECT :tenant_id, :id, :graph_id, :kind, :digest, :arguments, :cursor, :total, :held, :traceparent, :subject,
    CASE WHEN :held THEN clock_timestamp() + :held_for::interval END
WHERE (
    SELECT count(*) FROM (SELECT FROM jobs WHERE tenant_id = :tenant_id AND finished_at IS NULL LIMIT :max_open) AS pending
) < :max_open
ON CONFLICT (tenant_id, digest) WHERE digest IS NOT NULL AND finished_at IS NULL DO NOTHING
RETURNING id;

-- name: find_jobs
-- Those of these jobs (:job_ids) that the caller may see. :allowed_graphs: only of these graphs, where it is not null.
SELECT j.id, j.graph_id, g.name AS graph, j.kind, j.arguments, j.cursor, j.result, j.status, j.done, j.total,
    j.error_code, j.error_message, j.attempts, j.cancel_requested, j.lease, j.input_bytes, j.output_bytes,
    j.traceparent, j.created_by, j.created_at, j.started_at, j.finished_at, j.expires_at, j.output_deleted
FROM jobs j
LEFT JOIN graphs g ON g.tenant_id = :tenant_id AND g.id = j.graph_id
WHERE j.tenant_id = :tenant_id AND j.id = ANY (:job_ids::uuid[])
    AND (:allowed_graphs::uuid[] IS NULL OR j.graph_id = ANY (:allowed_graphs::uuid[]));

-- name: list_jobs
-- Jobs that the caller may see, newest first, before the id :before; at most :limit. Null leaves a condition out.
SELECT j.id, j.graph_id, g.name AS graph, j.kind, j.arguments, j.cursor, j.result, j.status, j.done, j.total,
    j.error_code, j.error_message, j.attempts, j.cancel_requested, j.lease, j.input_bytes, j.output_bytes,
    j.traceparent, j.created_by, j.created_at, j.started_at, j.finished_at, j.expires_at, j.output_deleted
FROM jobs j
LEFT JOIN graphs g ON g.tenant_id = :tenant_id AND g.id = j.graph_id
WHERE j.tenant_id = :tenant_id AND (:before::uuid IS NULL OR j.id < :before)
    AND (:allowed_graphs::uuid[] IS NULL OR j.graph_id = ANY (:allowed_graphs::uuid[]))
    AND (:graph_id::uuid IS NULL OR j.graph_id = :graph_id) AND (:kind::text IS NULL OR j.kind = :kind)
    AND (:status::text IS NULL OR j.status = :status)
ORDER BY j.id DESC
LIMIT :limit;

-- name: busy_graphs
-- Those of these graphs (:graph_ids) that have a job of a kind under way, or had one that ended after :since.
SELECT DISTINCT graph_id FROM jobs
WHERE tenant_id = :tenant_id AND kind = :kind AND graph_id = ANY (:graph_ids::uuid[])
    AND (finished_at IS NULL OR finished_at > :since);

-- name: start_job
-- Let a job begin that was held.
UPDATE jobs SET held = false, expires_at = NULL, next_attempt_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND id = :job_id AND held AND finished_at IS NULL
RETURNING id;

-- name: cancel_job
-- Ask a job to end. One that no worker has ends here; the others end between two steps. Whether it has ended.
UPDATE jobs j SET cancel_requested = true, digest = NULL,
    status = CASE WHEN is_free THEN 'cancelled' ELSE j.status END,
    lease = CASE WHEN NOT is_free THEN j.lease END,
    claimed_until = CASE WHEN NOT is_free THEN j.claimed_until END,
    finished_at = CASE WHEN is_free THEN statement_timestamp() END,
    expires_at = CASE WHEN is_free THEN statement_timestamp() + :retention::interval ELSE j.expires_at END
FROM (
    SELECT id, claimed_until IS NULL OR claimed_until < statement_timestamp() AS is_free
    FROM jobs
    WHERE tenant_id = :tenant_id AND id = :job_id AND finished_at IS NULL
    FOR UPDATE
) AS asked
WHERE j.tenant_id = :tenant_id AND j.id = asked.id
RETURNING is_free;

-- name: lock_claims
-- One worker at a time claims jobs of a tenant: the bound on those that run is counted, not guessed.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.jobs ' || :tenant_id::uuid::text, 0));

-- name: claim_job
-- Take the tenant's next job that is due, unless :max_running are running: those that were begun first, then the oldest.
WITH due AS (
    SELECT id FROM jobs
    WHERE tenant_id = :tenant_id AND finished_at IS NULL AND NOT held AND kind = ANY (:kinds::text[])
        AND next_attempt_at <= clock_timestamp() AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
        AND (
            SELECT count(*) FROM jobs
            WHERE tenant_id = :tenant_id AND finished_at IS NULL AND claimed_until >= clock_timestamp()
        ) < :max_running
    ORDER BY status = 'queued', id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs j SET status = 'running', lease = :lease_id, claimed_until = clock_timestamp() + :lease::interval,
    attempts = attempts + 1, started_at = coalesce(started_at, clock_timestamp())
FROM due
WHERE j.tenant_id = :tenant_id AND j.id = due.id
RETURNING j.id;

-- name: record_step
-- Store how far a job is and renew its lease; no row if the lease is another's. The last statement of a step: it takes
-- the job's lock after the graph's, as the deletion of a graph does.
UPDATE jobs SET cursor = :cursor, done = :done, total = :total, attempts = 1,
    claimed_until = clock_timestamp() + :lease::interval,
    error_code = NULL, error_message = NULL
WHERE tenant_id = :tenant_id AND id = :job_id AND lease = :lease_id
RETURNING cancel_requested;

-- name: finish_job
-- Nothing more will become of a job; no row if the lease is another's.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
UPDATE jobs SET status = :status, result = :result, error_code = :error_code, error_message = :error_message,
    finished_at = clock.now, expires_at = clock.now + :retention::interval, lease = NULL, claimed_until = NULL
FROM clock
WHERE tenant_id = :tenant_id AND id = :job_id AND lease = :lease_id
RETURNING finished_at;

-- name: release_job
-- Give a job back, to be taken up by whoever comes first after a while; no row if the lease is another's.
UPDATE jobs SET lease = NULL, claimed_until = NULL, attempts = :attempts,
    next_attempt_at = clock_timestamp() + :wait::interval,
    error_code = :error_code, error_message = :error_message
WHERE tenant_id = :tenant_id AND id = :job_id AND lease = :lease_id
RETURNING id;

-- name: insert_inputs
-- Append chunks to what a job reads; no row if it has been started.
WITH kept AS (
    UPDATE jobs SET input_bytes = input_bytes + :size WHERE tenant_id = :tenant_id AND id = :job_id AND held
        AND finished_at IS NULL
    RETURNING id
)
INSERT INTO job_inputs (tenant_id, job_id, ordinal, chunk)
SELECT :tenant_id, kept.id, c.position - 1 + (
        SELECT coalesce(max(ordinal) + 1, 0) FROM job_inputs WHERE tenant_id = :tenant_id AND job_id = :job_id
    ), c.chunk
FROM kept, unnest(:chunks::bytea[]) WITH ORDINALITY AS c (chunk, position)
RETURNING ordinal;

-- name: insert_outputs
-- Append chunks to what a job leaves to be fetched.
WITH kept AS (
    UPDATE jobs SET output_bytes = output_bytes + :size WHERE tenant_id = :tenant_id AND id = :job_id
    RETURNING id
)
INSERT INTO job_outputs (tenant_id, job_id, ordinal, chunk)
SELECT :tenant_id, kept.id, c.position - 1 + (
        SELECT coalesce(max(ordinal) + 1, 0) FROM job_outputs WHERE tenant_id = :tenant_id AND job_id = :job_id
    ), c.chunk
FROM kept, unnest(:chunks::bytea[]) WITH ORDINALITY AS c (chunk, position);

-- name: find_input
-- One chunk of what a job reads.
SELECT chunk FROM job_inputs WHERE tenant_id = :tenant_id AND job_id = :job_id AND ordinal = :ordinal;

-- name: find_output
-- One chunk of what a job left to be fetched.
SELECT chunk FROM job_outputs WHERE tenant_id = :tenant_id AND job_id = :job_id AND ordinal = :ordinal;

-- name: find_output_piece
-- The bytes of what a job left from :start on, at most :size.
WITH placed AS (
    SELECT ordinal, octet_length(chunk) AS size,
        sum(octet_length(chunk)) OVER (ORDER BY ordinal) - octet_length(chunk) AS begins
    FROM job_outputs
    WHERE tenant_id = :tenant_id AND job_id = :job_id
)
SELECT string_agg(
    substring(
        o.chunk FROM (greatest(:start::bigint - p.begins, 0) + 1)::integer
        FOR (least(p.begins + p.size, :start::bigint + :size::integer) - greatest(p.begins, :start::bigint))::integer
    ), ''::bytea ORDER BY o.ordinal
)
FROM placed p
JOIN job_outputs o ON o.tenant_id = :tenant_id AND o.job_id = :job_id AND o.ordinal = p.ordinal
WHERE p.begins < :start::bigint + :size::integer AND p.begins + p.size > :start::bigint;

-- name: lock_storage
-- One transaction of the tenant at a time adds to what its jobs keep and commits. Taken last: its holder waits for no
-- other lock.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.jobs.storage ' || :tenant_id::uuid::text, 0));

-- name: find_storage
-- Bytes of input and output that all jobs of the tenant keep, and that they may: :most at most, and at most what the
-- tenant's plan allows in graphs, though :least in any case.
SELECT coalesce(sum(j.input_bytes + j.output_bytes), 0)::bigint AS stored,
    least(:most::bigint, (
        SELECT greatest(p.stored_bytes, :least::bigint) FROM tenants t JOIN plans p ON p.name = t.plan
        WHERE t.id = :tenant_id AND p.stored_bytes IS NOT NULL
    )) AS allowed
FROM jobs j
WHERE j.tenant_id = :tenant_id AND j.input_bytes + j.output_bytes > 0;

-- name: drop_stored
-- A job that has finished needs its input no more, and its output (:output) only where it succeeded.
WITH inputs AS (
    DELETE FROM job_inputs WHERE tenant_id = :tenant_id AND job_id = :job_id
), outputs AS (
    DELETE FROM job_outputs WHERE tenant_id = :tenant_id AND job_id = :job_id AND :output
)
UPDATE jobs SET input_bytes = 0, output_bytes = CASE WHEN :output THEN 0 ELSE output_bytes END
WHERE tenant_id = :tenant_id AND id = :job_id;

-- name: delete_output
-- Delete what a job that succeeded left to be fetched; the job stays.
WITH deleted AS (
    DELETE FROM job_outputs WHERE tenant_id = :tenant_id AND job_id = :job_id
)
UPDATE jobs SET output_bytes = 0, output_deleted = true
WHERE tenant_id = :tenant_id AND id = :job_id AND status = 'succeeded' AND NOT output_deleted
RETURNING id;

-- name: remove_oldest_finished
-- Remove the oldest finished jobs of the tenant, up to :limit, where it has more than :most.
DELETE FROM jobs WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT id FROM jobs WHERE tenant_id = :tenant_id AND finished_at IS NOT NULL AND id <= (
        SELECT id FROM jobs WHERE tenant_id = :tenant_id ORDER BY id DESC OFFSET :most LIMIT 1
    )
    ORDER BY id LIMIT :limit
    FOR UPDATE SKIP LOCKED
));

-- name: lock_stored_files
-- One call at a time of a caller counts its jobs of a kind, and starts one: the bound is counted, not guessed.
SELECT pg_advisory_xact_lock(
    hashtextextended('recollect.jobs.files ' || :tenant_id::uuid::text || ' ' || :subject::text || ' ' || :kind::text, 0)
);

-- name: count_stored_files
-- How many jobs of a kind the caller started that are under way or keep a file.
SELECT count(*) FROM jobs
WHERE tenant_id = :tenant_id AND created_by = :subject AND kind = :kind
    AND (finished_at IS NULL OR output_bytes > 0);

-- name: remove_expired
-- Remove up to :limit jobs whose time is over, with what they stored.
DELETE FROM jobs WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT id FROM jobs WHERE tenant_id = :tenant_id AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT :limit
));

-- name: erase_jobs
-- Remove every job of the tenant, or of one graph (:graph_id), that stored input or output, with what it stored; and every
-- one that ended with an error, which may repeat what it read.
DELETE FROM jobs
WHERE tenant_id = :tenant_id AND (:graph_id::uuid IS NULL OR graph_id = :graph_id)
    AND (input_bytes + output_bytes > 0 OR finished_at IS NOT NULL AND error_message IS NOT NULL)
RETURNING id;
