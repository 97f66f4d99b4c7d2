"""History that is older than a graph keeps is removed."""
