-- Replaced by searched_vectors_live.
DROP INDEX searched_vectors_graph;
