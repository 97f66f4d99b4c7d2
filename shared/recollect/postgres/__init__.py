"""PostgreSQL: the pool, transactions of tenants, connections, replicas, and SQL by name."""
