"""OpenAPI documents, as far as the services' have it in common."""
