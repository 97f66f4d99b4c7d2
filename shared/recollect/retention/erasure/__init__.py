"""A person or a graph is removed from every table."""
