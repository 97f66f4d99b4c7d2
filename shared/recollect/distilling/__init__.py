"""Distilling: a language model of the operator's or the tenant's own finds facts in a conversation."""
