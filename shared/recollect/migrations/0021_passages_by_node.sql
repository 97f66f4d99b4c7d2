-- Passages are looked up by their ids, never by an index that holds all of a tenant's.

-- The index by node serves only where a node is asked for, which is what its condition says: no passage is without one.
-- Without statistics PostgreSQL takes a tenant to have a handful of passages, and preferred reading all of them by this
-- index to looking eight up by the primary key.
DROP INDEX passages_node;
CREATE INDEX passages_node ON passages (tenant_id, node_id) WHERE node_id IS NOT NULL;
