"""The operator API: tenants and plans, for whoever runs the service. A process of its own, with rights of its own."""
