"""Idempotency keys: a request that is sent again is done once."""
