"""Maintenance of the vector indexes of large graphs. Runs as the tables' owner, across tenants."""
