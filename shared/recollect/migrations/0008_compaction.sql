-- How far back the past of a graph can be read, and what compaction and erasure look for.

-- The oldest revision that can still be read, and when it was written. 0: all of them.
ALTER TABLE graphs
    ADD COLUMN compacted_revision bigint NOT NULL DEFAULT 0,
    ADD COLUMN compacted_at timestamptz;

-- When an entity last changed by observations that compaction has taken away: the past is told as it was.
ALTER TABLE nodes ADD COLUMN changed_before timestamptz;

CREATE OR REPLACE FUNCTION changed_at(tenant uuid, graph uuid, node uuid, since timestamptz, at_revision bigint)
RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT greatest(since, max(o.created_at), max(c.at),
        (SELECT n.changed_before FROM nodes n WHERE n.tenant_id = tenant AND n.id = node))
    FROM observations o
    LEFT JOIN changes c ON c.tenant_id = tenant AND c.graph_id = graph AND c.revision = o.removed_revision
        AND o.removed_revision <= at_revision
    WHERE o.tenant_id = tenant AND o.node_id = node AND o.added_revision <= at_revision
$$;

-- What compaction takes away, without looking at what lives.
CREATE INDEX observations_compactable ON observations (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
CREATE INDEX relations_compactable ON relations (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
CREATE INDEX passages_compactable ON passages (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
CREATE INDEX nodes_compactable ON nodes (tenant_id, graph_id, removed_revision) WHERE removed_revision IS NOT NULL;
CREATE INDEX node_versions_compactable ON node_versions (tenant_id, graph_id, superseded_revision)
    WHERE superseded_revision IS NOT NULL;

-- All that a version says in words: what an erasure looks for names in.
CREATE FUNCTION words_of(version node_versions) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT concat_ws(E'\n', version.name, version.kind, version.content, version.summary, version.source, version.thread,
        array_to_string(version.tags, E'\n'), version.metadata::text)
$$;
REVOKE ALL ON FUNCTION words_of(node_versions) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION words_of(node_versions) TO recollect_app;
