-- What lineages are read by: symlinks from either end, and the words of summaries and tags.

-- Few edges lead into another graph; those that lead into one are found by it.
CREATE INDEX relations_symlinks ON relations (tenant_id, to_graph, id)
    WHERE removed_revision IS NULL AND to_graph <> graph_id;

-- It begins with the graph, as the other GIN indexes do; the tenant is the search view's to check.
CREATE INDEX nodes_label_words ON nodes
    USING gin (graph_id, to_tsvector('english', coalesce(summary, '') || ' ' || joined(tags)))
    WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}');
