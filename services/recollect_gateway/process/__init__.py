"""The process: what keeps it from starting, whether it is ready, and what it does in the background."""
