"""Cells: several PostgreSQL clusters, each of which holds some tenants whole.

`service` finds the cell of a tenant, and is to the rest of the product one database. `directory/` says which tenant is
in which cell, as operators maintain it. `switches` ends the switch of a tenant whose move was interrupted, `reaching`
makes short connections to another cell. Tenants are moved by `recollect.moves`.
"""
