"""Toolset `lineage`: the memgraph package's vocabulary of graphs, lineages, versions, edges and symlinks."""
