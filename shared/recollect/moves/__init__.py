"""A tenant moves from one cell to another, by PostgreSQL's logical replication of its rows, while it is at work."""
