"""Generated histories of writes: every past revision reads as it did then, and no write breaks a law of the graph."""
