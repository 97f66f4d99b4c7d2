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
SELECT p.revision, p.at, p.actor, p.operation, p.counts, p.ids[1:(:max_ids)] AS ids,
    cardinality(p.ids) > :max_ids AS cut,
    CASE WHEN cardinality(p.ids) + gone.observations > :max_judged OR p.revision <= g.compacted_revision THEN true
    ELSE EXISTS (
        SELECT 1 FROM node_versions v
        WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id AND v.node_id = ANY (ARRAY(
                SELECT unnest(p.ids)
                UNION
                SELECT unnest(ARRAY[r.from_node, r.to_node]) FROM relations r
                WHERE r.tenant_id = :tenant_id AND r.id = ANY (p.ids)
            ))
            AND v.added_revision <= p.revision
            AND (v.superseded_revision IS NULL OR v.superseded_revision >= p.revision)
            AND (:nodes::uuid[] IS NULL OR v.node_id = ANY (:nodes::uuid[]))
            AND (:kinds::text[] IS NULL
                OR lower(v.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds::text[]) AS w (kind))))
            AND (:tags::text[] IS NULL OR EXISTS (
                SELECT 1 FROM unnest(v.tags) AS t (tag) JOIN unnest(:tags::text[]) AS w (tag)
                    ON lower(t.tag) = lower(w.tag)))
    ) OR EXISTS (
        SELECT 1 FROM (
            SELECT tenant_id, node_id, kind, tags FROM observations
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (p.ids)
                AND added_revision <= p.revision AND (removed_revision IS NULL OR removed_revision >= p.revision)
            UNION ALL
            SELECT tenant_id, node_id, kind, tags FROM observations
            WHERE gone.observations > 0 AND tenant_id = :tenant_id AND graph_id = :graph_id
                AND same_key(removed_revision, p.revision)
        ) AS o
        JOIN node_versions v ON v.tenant_id = o.tenant_id AND v.node_id = o.node_id AND v.added_revision <= p.revision
            AND (v.superseded_revision IS NULL OR v.superseded_revision >= p.revision)
        WHERE (:nodes::uuid[] IS NULL OR o.node_id = ANY (:nodes::uuid[]))
            AND (:kinds::text[] IS NULL
                OR lower(v.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds::text[]) AS w (kind)))
                OR lower(o.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds::text[]) AS w (kind))))
            AND (:tags::text[] IS NULL OR EXISTS (
                SELECT 1 FROM unnest(v.tags || o.tags) AS t (tag) JOIN unnest(:tags::text[]) AS w (tag)
                    ON lower(t.tag) = lower(w.tag)))
    ) END AS wanted
FROM page p
JOIN graphs g ON g.tenant_id = :tenant_id AND g.id = :graph_id
CROSS JOIN LATERAL (
    SELECT count(*) AS observations FROM (
        SELECT FROM observations
        WHERE p.counts ? 'nodes_removed' AND tenant_id = :tenant_id AND graph_id = :graph_id
            AND same_key(removed_revision, p.revision)
        ORDER BY removed_revision LIMIT :max_judged + 1
    ) AS o
) AS gone
ORDER BY p.revision;
