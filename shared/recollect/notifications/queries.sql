-- name: list_filtered_changes
-- The changes of a graph after a revision, oldest first, at most :limit; of their ids the first :max_ids. `wanted`:
-- whether the change touched a node with one of :kinds and one of :tags among :nodes (each null: any), before or after
-- the change, or an observation or a relation of such a node. A change that cannot be compared, since it has too many
-- ids or is before the horizon, is wanted.
WITH page AS (
    SELECT revision, at, actor, operation, counts, ids
    FROM changes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :since
    ORDER BY revision
    LIMIT :limit
)
SELECT page.revision, page.at, page.actor, page.operation, page.counts, page.ids[1:(:max_ids)] AS ids,
    cardinality(page.ids) > :max_ids AS cut,
    CASE WHEN cardinality(page.ids) + gone.observations > :max_judged
        OR page.revision <= graph.compacted_revision THEN true
    ELSE EXISTS (
        SELECT 1 FROM node_versions version
        WHERE version.tenant_id = :tenant_id AND version.graph_id = :graph_id AND version.node_id = ANY (ARRAY(
                SELECT unnest(page.ids)
                UNION
                SELECT unnest(ARRAY[edge.from_node, edge.to_node]) FROM relations edge
                WHERE edge.tenant_id = :tenant_id AND edge.id = ANY (page.ids)
            ))
            AND version.added_revision <= page.revision
            AND (version.superseded_revision IS NULL OR version.superseded_revision >= page.revision)
            AND (:nodes::uuid[] IS NULL OR version.node_id = ANY (:nodes::uuid[]))
            AND (:kinds::text[] IS NULL
                OR lower(version.kind) = ANY (ARRAY(SELECT lower(wanted.kind)
                    FROM unnest(:kinds::text[]) AS wanted (kind))))
            AND (:tags::text[] IS NULL OR EXISTS (
                SELECT 1 FROM unnest(version.tags) AS own (tag) JOIN unnest(:tags::text[]) AS wanted (tag)
                    ON lower(own.tag) = lower(wanted.tag)))
    ) OR EXISTS (
        SELECT 1 FROM (
            SELECT tenant_id, node_id, kind, tags FROM observations
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (page.ids)
                AND added_revision <= page.revision AND (removed_revision IS NULL OR removed_revision >= page.revision)
            UNION ALL
            SELECT tenant_id, node_id, kind, tags FROM observations
            WHERE gone.observations > 0 AND tenant_id = :tenant_id AND graph_id = :graph_id
                AND same_key(removed_revision, page.revision)
        ) AS observation
        JOIN node_versions version ON version.tenant_id = observation.tenant_id
            AND version.node_id = observation.node_id AND version.added_revision <= page.revision
            AND (version.superseded_revision IS NULL OR version.superseded_revision >= page.revision)
        WHERE (:nodes::uuid[] IS NULL OR observation.node_id = ANY (:nodes::uuid[]))
            AND (:kinds::text[] IS NULL
                OR lower(version.kind) = ANY (ARRAY(SELECT lower(wanted.kind)
                    FROM unnest(:kinds::text[]) AS wanted (kind)))
                OR lower(observation.kind) = ANY (ARRAY(SELECT lower(wanted.kind)
                    FROM unnest(:kinds::text[]) AS wanted (kind))))
            AND (:tags::text[] IS NULL OR EXISTS (
                SELECT 1 FROM unnest(version.tags || observation.tags) AS own (tag)
                JOIN unnest(:tags::text[]) AS wanted (tag)
                    ON lower(own.tag) = lower(wanted.tag)))
    ) END AS wanted
FROM page
JOIN graphs graph ON graph.tenant_id = :tenant_id AND graph.id = :graph_id
CROSS JOIN LATERAL (
    SELECT count(*) AS observations FROM (
        SELECT FROM observations
        WHERE page.counts ? 'nodes_removed' AND tenant_id = :tenant_id AND graph_id = :graph_id
            AND same_key(removed_revision, page.revision)
        ORDER BY removed_revision LIMIT :max_judged + 1
    ) AS observation
) AS gone
ORDER BY page.revision;
