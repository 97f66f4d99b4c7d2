"""Tenants: the organisations that Recollect keeps apart."""
