-- Rows of a tenant are looked up by an index that is led by the tenant and their key. A planner that expects one row of a
-- tenant, of one that came or grew after statistics were gathered, takes any index that is led by the tenant, and reads all
-- of the tenant's rows for each that is looked up. It cannot take one whose condition is true of every row, but says so of
-- the key alone: so no index but the primary key is of all rows, from here to 0073. Of those of live rows it takes the one
-- with the fewest levels, which has few entries for many rows: with the row's own id none has, and pages come in their
-- order. While one is made, writing to its table waits; each table has its migrations to itself, and what replaces an index
-- is made before that is dropped in another: so nobody who holds one table waits for the next.
CREATE INDEX passages_live ON passages (tenant_id, graph_id, id) WHERE removed_revision IS NULL;
