"""Entities: nodes with a name, and what is told of them."""
