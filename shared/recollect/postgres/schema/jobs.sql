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
