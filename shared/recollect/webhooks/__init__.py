"""Webhooks: a tenant is told of events at addresses of its choice, after the Standard Webhooks specification."""
