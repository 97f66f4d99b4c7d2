"""Accounts: the organisations, their credentials, and what they use."""
