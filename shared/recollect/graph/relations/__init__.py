"""Relations: directed, typed edges between lineages."""
