"""Toolset `lineage`: the memgraph package's vocabulary of graphs, lineages, versions, edges and symlinks.

The tools that create, configure and delete graphs need the scope memory:write and no more: the first write to a name
creates a graph anyway, and a caller that may write to a graph may empty it. A key confined to some graphs by an
allow-list may use none of the three: it uses its graphs as they are configured. `shapes` has what the tools share.
"""
