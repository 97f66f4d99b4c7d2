"""What the worker does, a module per capability."""
