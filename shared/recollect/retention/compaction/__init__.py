"""History that is older than a graph keeps is removed: by the tool `compact`, or on a schedule."""
