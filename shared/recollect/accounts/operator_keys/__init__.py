"""Keys of operators: the credentials of the operator API."""
