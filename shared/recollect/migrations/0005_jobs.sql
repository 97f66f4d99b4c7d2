-- Jobs: work that is too long for one call, done by the worker in steps, and visible while it is done.
--
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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE,
    CHECK ((finished_at IS NULL) = (status IN ('queued', 'running'))),
    CHECK ((lease IS NULL) = (claimed_until IS NULL)),
    CHECK (finished_at IS NULL OR lease IS NULL)
) WITH (fillfactor = 60);
CREATE INDEX jobs_pending ON jobs (tenant_id, id) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX jobs_pending_once ON jobs (tenant_id, digest) WHERE digest IS NOT NULL AND finished_at IS NULL;
CREATE INDEX jobs_storing ON jobs (tenant_id, id) WHERE input_bytes + output_bytes > 0;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_of_graph ON jobs (tenant_id, graph_id);

-- What a job reads and what it leaves to be fetched, in chunks. These hold stored text, and go before the job does.
CREATE TABLE job_inputs (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    ordinal integer NOT NULL,
    chunk bytea NOT NULL CHECK (octet_length(chunk) BETWEEN 1 AND 1048576),
    PRIMARY KEY (tenant_id, job_id, ordinal),
    FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id) ON DELETE CASCADE
);
CREATE TABLE job_outputs (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    ordinal integer NOT NULL,
    chunk bytea NOT NULL CHECK (octet_length(chunk) BETWEEN 1 AND 1048576),
    PRIMARY KEY (tenant_id, job_id, ordinal),
    FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id) ON DELETE CASCADE
);

DO $$
DECLARE tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['jobs', 'job_inputs', 'job_outputs']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant_isolation ON %I USING (tenant_id = (SELECT nullif(current_setting(
            ''recollect.tenant_id'', true), '''')::uuid))', tenant_table);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs, job_inputs, job_outputs TO recollect_app;

-- Tenants that have a job to be worked on or to be removed: ids only.
CREATE FUNCTION tenants_with_due_jobs()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id
    FROM tenants t
    WHERE t.status = 'active' AND t.id IN (
        SELECT j.tenant_id FROM jobs j
        WHERE j.finished_at IS NULL AND NOT j.held AND j.next_attempt_at <= statement_timestamp()
            AND (j.claimed_until IS NULL OR j.claimed_until < statement_timestamp())
        UNION ALL
        SELECT j.tenant_id FROM jobs j WHERE j.expires_at <= statement_timestamp()
    )
    ORDER BY t.id
$$;
REVOKE ALL ON FUNCTION tenants_with_due_jobs() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_due_jobs() TO recollect_app;
