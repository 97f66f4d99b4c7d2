"""Cells: several PostgreSQL clusters, each of which holds some tenants whole."""
