"""What of a graph is not as it should be."""
