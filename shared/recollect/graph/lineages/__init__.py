"""Lineages: every version of a node, conflicts between versions, and graphs as they were."""
