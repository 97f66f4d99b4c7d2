"""Entities: nodes with a name, and their observations."""
