"""Adapters: memory of Recollect where agent frameworks look for memory. Each needs the extra of its name."""
