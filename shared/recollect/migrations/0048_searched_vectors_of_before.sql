-- The vectors that passages were searched by before are copied. What is remembered meanwhile does not wait; what settles,
-- renews or removes passages of the version before does, since it takes the graph's index in hand first, in this order,
-- too: else a worker could wait for a row that was copied, and the copy for one that the worker takes over.
SELECT graph_id FROM graph_indexes ORDER BY graph_id FOR UPDATE;

INSERT INTO searched_vectors (tenant_id, graph_id, passage_id, model, embedding, live)
SELECT tenant_id, graph_id, id, embedding_model, embedding, removed_revision IS NULL
FROM passages
WHERE embedding IS NOT NULL AND embedding_model IS NOT NULL
ON CONFLICT DO NOTHING;
