"""Upkeep of what makes search fast: vector indexes of large graphs. Runs as the tables' owner, across tenants."""
