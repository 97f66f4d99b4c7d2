"""The worker's jobs, a module per capability."""
