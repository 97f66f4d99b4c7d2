"""Bodies, parameters and arguments: read with bounds, parsed and checked."""
