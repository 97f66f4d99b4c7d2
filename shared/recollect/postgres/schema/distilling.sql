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
