"""How much work waits for workers, of all tenants together: numbers for whoever runs the service."""
