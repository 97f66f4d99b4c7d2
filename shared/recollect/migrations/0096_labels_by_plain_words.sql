-- Summaries and tags are found whatever apostrophes they have: their words are those of the text with plain ones, as the
-- words of questions and of passages are. The index of their words as they are written stays for the previous release.

CREATE FUNCTION label_words(text text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT to_tsvector('english', recollect.plain_apostrophes(text)) $$;

REVOKE ALL ON FUNCTION label_words(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION label_words(text) TO recollect_app;

CREATE INDEX nodes_labels ON nodes USING gin (graph_id, label_words(coalesce(summary, '') || ' ' || joined(tags)))
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}');
