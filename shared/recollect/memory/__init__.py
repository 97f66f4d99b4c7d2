"""Memory: what spans capabilities: remember, read a graph, delete with all that belongs."""
