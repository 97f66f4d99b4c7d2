"""Graphs: the unit of isolation inside a tenant, their heads, revisions and changes."""
