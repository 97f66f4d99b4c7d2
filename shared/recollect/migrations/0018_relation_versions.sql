-- A relation whose metadata or ordinal is put anew keeps its id. What it was stays as a row of its own, taken away by the
-- revision that changed it, so that every past state tells what it had then.

-- version_of: of such a former version, the relation that it was. updated_at: when the properties were put, where that is
-- after the relation was made.
ALTER TABLE relations ADD COLUMN version_of uuid, ADD COLUMN updated_at timestamptz;

-- The former versions of a relation: undoing and exports of the past look them up by its id, which the log names.
CREATE INDEX relations_versions ON relations (tenant_id, version_of) WHERE version_of IS NOT NULL;

-- Every relation that there was at a revision, as it was then, by the id that it has now. The columns are those of the
-- table, in its order.
CREATE OR REPLACE FUNCTION relations_at(tenant uuid, graph uuid, at_revision bigint)
RETURNS SETOF relations
LANGUAGE sql STABLE
AS $$
    SELECT * FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND added_revision <= at_revision
    UNION ALL
    SELECT tenant_id, graph_id, coalesce(version_of, id), from_node, to_graph, to_node, type, metadata, ordinal,
        added_revision, removed_revision, created_at, created_by, version_of, updated_at
    FROM relations
    WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NOT NULL AND removed_revision > at_revision
        AND added_revision <= at_revision
$$;
