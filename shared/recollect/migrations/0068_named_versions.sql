-- As 0064.
CREATE INDEX node_versions_named ON node_versions (tenant_id, graph_id, name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX node_versions_id ON node_versions (tenant_id, id) WHERE id IS NOT NULL;
