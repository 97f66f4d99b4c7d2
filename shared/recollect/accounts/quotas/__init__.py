"""Quotas: what a tenant may store by its plan, and how much it does."""
