-- As 0064. What goes through the versions of a graph says so of the graph.
CREATE INDEX node_versions_named ON node_versions (tenant_id, graph_id, name) WHERE name IS NOT NULL;
CREATE INDEX node_versions_of_graph ON node_versions (tenant_id, graph_id, node_id) WHERE graph_id IS NOT NULL;
CREATE UNIQUE INDEX node_versions_id ON node_versions (tenant_id, id) WHERE id IS NOT NULL;
