-- Replaced by passages_live.
DROP INDEX passages_live_graph;
