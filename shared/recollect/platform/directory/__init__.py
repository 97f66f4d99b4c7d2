"""The directory of cells, as operators keep it: in which cell a tenant is."""
