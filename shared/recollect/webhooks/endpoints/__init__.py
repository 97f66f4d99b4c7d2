"""Endpoints: the webhooks themselves, with their addresses, filters and secrets."""
