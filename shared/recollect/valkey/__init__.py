"""Valkey (or Redis): the client, wake-ups, notices of changes, shared values, and rate limits."""
