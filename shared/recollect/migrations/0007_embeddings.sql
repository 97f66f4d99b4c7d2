-- Passages that the embedder does not take, and facts that wait to be related to what they are like.

-- failures: how often the embedder failed on this text alone while it answered others. refused: why the passage was set
-- aside, in words of ours that hold nothing stored: it has no vector, is found by its words, and is out of the queue.
ALTER TABLE passages
    ADD COLUMN failures smallint NOT NULL DEFAULT 0,
    ADD COLUMN refused text,
    ADD COLUMN refused_at timestamptz;
CREATE INDEX passages_refused ON passages (tenant_id, graph_id, id)
    WHERE refused IS NOT NULL AND removed_revision IS NULL;

-- New facts that are to be related to the entities they are like, at least as near as threshold (a cosine), once they are
-- embedded. The worker's queue: a row goes in the transaction that relates its fact.
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

-- Tenants that have facts to be related, and embedded: ids only.
CREATE FUNCTION tenants_with_autolinks()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM autolinks a
        WHERE a.tenant_id = t.id AND NOT EXISTS (
            SELECT 1 FROM passages p
            WHERE p.tenant_id = a.tenant_id AND p.node_id = a.node_id AND p.removed_revision IS NULL AND NOT p.settled
        )
    )
$$;
REVOKE ALL ON FUNCTION tenants_with_autolinks() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_autolinks() TO recollect_app;

-- model: whose vectors a graph is searched by, and what its new passages are embedded by, while an embedder of that name
-- is at hand; null until its first passage is embedded.
ALTER TABLE graph_indexes ADD COLUMN model text;
UPDATE graph_indexes i SET model = (
    SELECT p.embedding_model FROM passages p
    WHERE p.tenant_id = i.tenant_id AND p.graph_id = i.graph_id AND p.removed_revision IS NULL
        AND p.embedding_model IS NOT NULL
    LIMIT 1
);
