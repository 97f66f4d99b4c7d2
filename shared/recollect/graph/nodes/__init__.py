"""Nodes: lineages of immutable versions; those without a name are facts."""
