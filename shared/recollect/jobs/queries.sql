-- name: tenants_with_due
-- Tenants that have a job to be worked on or to be removed; asked without a tenant.
SELECT tenant_id FROM tenants_with_due_jobs();

-- name: find_equal
-- The job under way that an equal one would double.
SELECT id FROM jobs WHERE tenant_id = $1 AND digest = $2 AND finished_at IS NULL;

-- name: insert_job
-- A new job, unless an equal one is under way or $9 are already. One that is held goes after $10 if nobody starts it.
INSERT INTO jobs (tenant_id, id, graph_id, kind, digest, arguments, total, held, traceparent, created_by, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $11, $12, CASE WHEN $8 THEN clock_timestamp() + $10::interval END
WHERE (
    SELECT count(*) FROM (SELECT FROM jobs WHERE tenant_id = $1 AND finished_at IS NULL LIMIT $9) AS pending
) < $9
ON CONFLICT (tenant_id, digest) WHERE digest IS NOT NULL AND finished_at IS NULL DO NOTHING
RETURNING id;

-- name: find_job
-- A job that the caller may see. $3: only of these graphs, where it is not null.
SELECT j.id, j.graph_id, g.name AS graph, j.kind, j.arguments, j.cursor, j.result, j.status, j.done, j.total,
    j.error_code, j.error_message, j.attempts, j.cancel_requested, j.lease, j.input_bytes, j.output_bytes,
    j.traceparent, j.created_by, j.created_at, j.started_at, j.finished_at, j.expires_at
FROM jobs j
LEFT JOIN graphs g ON g.tenant_id = $1 AND g.id = j.graph_id
WHERE j.tenant_id = $1 AND j.id = $2 AND ($3::uuid[] IS NULL OR j.graph_id = ANY ($3::uuid[]));

-- name: list_jobs
-- Jobs that the caller may see, newest first, before the id $2; at most $3. Null leaves a condition out.
SELECT j.id, j.graph_id, g.name AS graph, j.kind, j.arguments, j.cursor, j.result, j.status, j.done, j.total,
    j.error_code, j.error_message, j.attempts, j.cancel_requested, j.lease, j.input_bytes, j.output_bytes,
    j.traceparent, j.created_by, j.created_at, j.started_at, j.finished_at, j.expires_at
FROM jobs j
LEFT JOIN graphs g ON g.tenant_id = $1 AND g.id = j.graph_id
WHERE j.tenant_id = $1 AND ($2::uuid IS NULL OR j.id < $2) AND ($4::uuid[] IS NULL OR j.graph_id = ANY ($4::uuid[]))
    AND ($5::uuid IS NULL OR j.graph_id = $5) AND ($6::text IS NULL OR j.kind = $6)
    AND ($7::text IS NULL OR j.status = $7)
ORDER BY j.id DESC
LIMIT $3;

-- name: busy_graphs
-- Those of these graphs ($3) that have a job of a kind under way, or had one that ended after $4.
SELECT DISTINCT graph_id FROM jobs
WHERE tenant_id = $1 AND kind = $2 AND graph_id = ANY ($3::uuid[]) AND (finished_at IS NULL OR finished_at > $4);

-- name: start_job
-- Let a job begin that was held.
UPDATE jobs SET held = false, expires_at = NULL, next_attempt_at = clock_timestamp()
WHERE tenant_id = $1 AND id = $2 AND held AND finished_at IS NULL
RETURNING id;

-- name: cancel_job
-- Ask a job to end. One that no worker has ends here; the others end between two steps. Whether it has ended.
UPDATE jobs j SET cancel_requested = true, digest = NULL,
    status = CASE WHEN is_free THEN 'cancelled' ELSE j.status END,
    lease = CASE WHEN NOT is_free THEN j.lease END,
    claimed_until = CASE WHEN NOT is_free THEN j.claimed_until END,
    finished_at = CASE WHEN is_free THEN statement_timestamp() END,
    expires_at = CASE WHEN is_free THEN statement_timestamp() + $3::interval ELSE j.expires_at END
FROM (
    SELECT id, claimed_until IS NULL OR claimed_until < statement_timestamp() AS is_free
    FROM jobs
    WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL
    FOR UPDATE
) AS asked
WHERE j.tenant_id = $1 AND j.id = asked.id
RETURNING is_free;

-- name: lock_claims
-- One worker at a time claims jobs of a tenant: the bound on those that run is counted, not guessed.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.jobs ' || $1::uuid::text, 0));

-- name: claim_job
-- Take the tenant's next job that is due, unless $3 are running: those that were begun first, then the oldest.
WITH due AS (
    SELECT id FROM jobs
    WHERE tenant_id = $1 AND finished_at IS NULL AND NOT held AND kind = ANY ($2::text[])
        AND next_attempt_at <= clock_timestamp() AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
        AND (
            SELECT count(*) FROM jobs
            WHERE tenant_id = $1 AND finished_at IS NULL AND claimed_until >= clock_timestamp()
        ) < $3
    ORDER BY status = 'queued', id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs j SET status = 'running', lease = $4, claimed_until = clock_timestamp() + $5::interval,
    attempts = attempts + 1, started_at = coalesce(started_at, clock_timestamp())
FROM due
WHERE j.tenant_id = $1 AND j.id = due.id
RETURNING j.id;

-- name: record_step
-- Store how far a job is and renew its lease; no row if the lease is another's. The last statement of a step: it takes
-- the job's lock after the graph's, as the deletion of a graph does.
UPDATE jobs SET cursor = $4, done = $5, total = $6, attempts = 1, claimed_until = clock_timestamp() + $7::interval,
    error_code = NULL, error_message = NULL
WHERE tenant_id = $1 AND id = $2 AND lease = $3
RETURNING cancel_requested;

-- name: finish_job
-- Nothing more will become of a job; no row if the lease is another's.
UPDATE jobs SET status = $4, result = $5, error_code = $6, error_message = $7, finished_at = clock_timestamp(),
    expires_at = clock_timestamp() + $8::interval, lease = NULL, claimed_until = NULL
WHERE tenant_id = $1 AND id = $2 AND lease = $3
RETURNING finished_at;

-- name: release_job
-- Give a job back, to be taken up by whoever comes first after a while; no row if the lease is another's.
UPDATE jobs SET lease = NULL, claimed_until = NULL, attempts = $4, next_attempt_at = clock_timestamp() + $5::interval,
    error_code = $6, error_message = $7
WHERE tenant_id = $1 AND id = $2 AND lease = $3
RETURNING id;

-- name: insert_inputs
-- Append chunks to what a job reads; no row if it has been started.
WITH kept AS (
    UPDATE jobs SET input_bytes = input_bytes + $4 WHERE tenant_id = $1 AND id = $2 AND held AND finished_at IS NULL
    RETURNING id
)
INSERT INTO job_inputs (tenant_id, job_id, ordinal, chunk)
SELECT $1, kept.id, c.place - 1 + (
        SELECT coalesce(max(ordinal) + 1, 0) FROM job_inputs WHERE tenant_id = $1 AND job_id = $2
    ), c.chunk
FROM kept, unnest($3::bytea[]) WITH ORDINALITY AS c (chunk, place)
RETURNING ordinal;

-- name: insert_outputs
-- Append chunks to what a job leaves to be fetched.
WITH kept AS (
    UPDATE jobs SET output_bytes = output_bytes + $4 WHERE tenant_id = $1 AND id = $2
    RETURNING id
)
INSERT INTO job_outputs (tenant_id, job_id, ordinal, chunk)
SELECT $1, kept.id, c.place - 1 + (
        SELECT coalesce(max(ordinal) + 1, 0) FROM job_outputs WHERE tenant_id = $1 AND job_id = $2
    ), c.chunk
FROM kept, unnest($3::bytea[]) WITH ORDINALITY AS c (chunk, place);

-- name: find_input
-- One chunk of what a job reads.
SELECT chunk FROM job_inputs WHERE tenant_id = $1 AND job_id = $2 AND ordinal = $3;

-- name: find_output
-- One chunk of what a job left to be fetched.
SELECT chunk FROM job_outputs WHERE tenant_id = $1 AND job_id = $2 AND ordinal = $3;

-- name: find_output_piece
-- The bytes of what a job left from $3 on, at most $4.
WITH placed AS (
    SELECT ordinal, octet_length(chunk) AS size,
        sum(octet_length(chunk)) OVER (ORDER BY ordinal) - octet_length(chunk) AS begins
    FROM job_outputs
    WHERE tenant_id = $1 AND job_id = $2
)
SELECT string_agg(
    substring(
        o.chunk FROM (greatest($3::bigint - p.begins, 0) + 1)::integer
        FOR (least(p.begins + p.size, $3::bigint + $4::integer) - greatest(p.begins, $3::bigint))::integer
    ), ''::bytea ORDER BY o.ordinal
)
FROM placed p
JOIN job_outputs o ON o.tenant_id = $1 AND o.job_id = $2 AND o.ordinal = p.ordinal
WHERE p.begins < $3::bigint + $4::integer AND p.begins + p.size > $3::bigint;

-- name: count_stored
-- Bytes of input and output that all jobs of the tenant keep.
SELECT coalesce(sum(input_bytes + output_bytes), 0)::bigint FROM jobs
WHERE tenant_id = $1 AND input_bytes + output_bytes > 0;

-- name: drop_stored
-- A job that has finished needs its input no more, and its output ($3) only where it succeeded.
WITH inputs AS (
    DELETE FROM job_inputs WHERE tenant_id = $1 AND job_id = $2
), outputs AS (
    DELETE FROM job_outputs WHERE tenant_id = $1 AND job_id = $2 AND $3
)
UPDATE jobs SET input_bytes = 0, output_bytes = CASE WHEN $3 THEN 0 ELSE output_bytes END
WHERE tenant_id = $1 AND id = $2;

-- name: remove_expired
-- Remove up to $2 jobs whose time is over, with what they stored.
DELETE FROM jobs WHERE tenant_id = $1 AND id = ANY (ARRAY(
    SELECT id FROM jobs WHERE tenant_id = $1 AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $2
));

-- name: erase_jobs
-- Remove every job of the tenant, or of one graph ($2), that stored input or output, with what it stored; and every one
-- that ended with an error, which may repeat what an import read: older versions wrote it so.
DELETE FROM jobs
WHERE tenant_id = $1 AND ($2::uuid IS NULL OR graph_id = $2)
    AND (input_bytes + output_bytes > 0 OR finished_at IS NOT NULL AND error_message IS NOT NULL)
RETURNING id;
