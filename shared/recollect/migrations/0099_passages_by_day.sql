-- What was said on some days, newest first, and whose text names a day. As 0064: their conditions are true of every key.
-- The second is written as no other index of live passages by graph: a planner that expects few would take any of these.
CREATE INDEX passages_said ON passages (tenant_id, graph_id, said_at, id)
    WHERE removed_revision IS NULL AND said_at IS NOT NULL;
CREATE INDEX passages_named_days ON passages USING gin (graph_id, named_days) WITH (gin_pending_list_limit = 128)
    WHERE coalesce(removed_revision, 0) = 0 AND named_days IS NOT NULL;
