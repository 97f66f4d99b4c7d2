-- What few have written waits in the order of graphs, as live passages are: where PostgreSQL expects one row, it took the
-- index of all live passages and read a whole graph, of which little waited. No other index of passages is for a condition
-- that is written so.
CREATE INDEX passages_waiting_of_few ON passages (tenant_id, graph_id, id)
    WHERE NOT settled AND NOT bulk AND coalesce(removed_revision, 0) = 0;
