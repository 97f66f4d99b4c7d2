"""Traversal: neighbourhoods and paths, one query a level, bounded by depth, nodes, edges and time."""
