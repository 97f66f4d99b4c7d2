-- name: find_archivable
-- Entities that are not archived, last changed before :older_than, are less important than :importance_below and have
-- one of the tags :tags (null: any), longest unchanged first; at most :limit. An entity without an importance does
-- not meet :importance_below.
SELECT id, name FROM nodes n
WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL AND n.name IS NOT NULL
    AND NOT n.placeholder AND n.status <> 'archived' AND is_current(n.expires_at)
    AND (:older_than::timestamptz IS NULL OR updated_at < :older_than)
    AND (:importance_below::double precision IS NULL OR importance < :importance_below)
    AND (cardinality(:tags::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest(:tags::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
ORDER BY updated_at, id
LIMIT :limit;
