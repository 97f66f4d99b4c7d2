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
