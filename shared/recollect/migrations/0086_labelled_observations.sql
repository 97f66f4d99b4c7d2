-- list_tags and describe_schema count the kinds and tags that observations have themselves, and read no other observations.
CREATE INDEX observations_labelled ON observations (tenant_id, graph_id, id)
    WHERE removed_revision IS NULL AND (kind IS NOT NULL OR tags <> '{}');
