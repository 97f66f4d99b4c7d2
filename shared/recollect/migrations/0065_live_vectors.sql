-- As 0064.
CREATE INDEX searched_vectors_live ON searched_vectors (tenant_id, graph_id, passage_id) WHERE live;
