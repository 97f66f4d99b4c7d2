"""Trusted issuers: whose access tokens a tenant accepts beside our own."""
