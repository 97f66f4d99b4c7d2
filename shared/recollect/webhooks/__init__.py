"""Webhooks: events are sent to addresses that a tenant chooses, by the Standard Webhooks specification."""
