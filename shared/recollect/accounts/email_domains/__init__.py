"""E-mail domains: a tenant proves that one is its own, and people with an address there may join."""
