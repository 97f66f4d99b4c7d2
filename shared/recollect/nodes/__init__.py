"""Nodes: lineages of immutable versions, entities with their observations, and facts."""
