"""Memory: use cases that span capabilities, such as remembering, reading a graph, deleting nodes with their parts."""
