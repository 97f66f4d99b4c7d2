"""Addresses in settings: of the mail server, of the gateway itself, and of other services."""
