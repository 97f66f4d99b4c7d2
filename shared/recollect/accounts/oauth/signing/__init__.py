"""Signing keys: what ID tokens are signed with."""
