"""Trusted issuers: whose access tokens a tenant accepts in addition to ours."""
