"""PostgreSQL: the pool, transactions of tenants, connections, replicas, and SQL by name.

`database` has the pool of one cell, `tenant_database` what code of one tenant sees of it, `transactions` the
transaction of a tenant and its setting for row-level security, `sql` the queries by name. `schema/` is the present
schema to read, `migrations/` lead to it, `migrate` applies them, and `schema_version` is what a process expects.
"""
