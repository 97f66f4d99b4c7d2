"""Routes of what is remembered: graphs, nodes, memories, their search, changes, jobs and transfer."""
