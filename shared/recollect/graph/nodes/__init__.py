"""Nodes: lineages of immutable versions. A node with a name is an entity, one without is a fact."""
