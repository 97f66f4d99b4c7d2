"""Language models: which one distils the conversations of a tenant."""
