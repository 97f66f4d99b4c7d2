"""The graph: versioned nodes, what is said of them, how they are related, and the passages that find them."""
