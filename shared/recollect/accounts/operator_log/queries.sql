-- name: insert_entry
-- One act of an operator.
INSERT INTO operator_log (actor, action, subject, address, trace_id, details)
VALUES (:actor, :action, :subject, :address, :trace_id, :details::text::jsonb);

-- name: list_entries
-- Entries before the id :before, newest first; at most :limit. :subject null: of all.
SELECT id, at, actor, action, subject, address, trace_id, details::text AS details
FROM operator_log
WHERE (:subject::text IS NULL OR subject = :subject) AND (:before::bigint IS NULL OR id < :before)
ORDER BY id DESC
LIMIT :limit;
