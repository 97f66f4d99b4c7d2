-- The memories of a graph from the newest on: a filter alone lists them, and so does a question that asks for everything. A
-- name has no time, and comes after all that has one.
CREATE INDEX passages_newest ON passages (tenant_id, graph_id, coalesce(said_at, '0001-01-01 00:00:00+00'::timestamptz), id)
    WHERE removed_revision IS NULL AND place = 0;
