"""How much work waits for workers, of all tenants together: numbers for operators of the service."""
