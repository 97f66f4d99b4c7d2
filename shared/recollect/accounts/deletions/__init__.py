"""Deletion of tenants: with grace, in steps, and with a receipt."""
