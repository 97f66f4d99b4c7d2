"""Hierarchy: parents and children among the entities of a graph."""
