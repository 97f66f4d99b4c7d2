-- name: find_archivable
-- Entities in use that last changed before $3, are less important than $4 and have one of the tags $5, each where it is
-- given, longest unchanged first; at most $6. One without an importance is not less important than anything.
SELECT id, name FROM nodes n
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND n.name IS NOT NULL AND NOT n.placeholder
    AND n.status <> 'archived' AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
    AND ($3::timestamptz IS NULL OR updated_at < $3)
    AND ($4::double precision IS NULL OR importance < $4)
    AND (cardinality($5::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest($5::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)))
ORDER BY updated_at, id
LIMIT $6;
