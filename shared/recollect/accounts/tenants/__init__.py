"""Tenants: the organisations that Recollect isolates from each other."""
