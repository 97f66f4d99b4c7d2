-- As 0064.
CREATE INDEX relations_outgoing ON relations (tenant_id, from_node, id) WHERE from_node IS NOT NULL;
CREATE INDEX relations_incoming ON relations (tenant_id, to_node, id) WHERE removed_revision IS NULL;
