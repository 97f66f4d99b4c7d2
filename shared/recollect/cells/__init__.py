"""Cells: several PostgreSQL clusters, each of which holds some tenants whole.

`databases` has the database of each cell, and finds that of a tenant. `fan_out` asks several at once. `directory/` says
which tenant is in which cell, as operators maintain it. `switches` ends the switch of a tenant whose move was
interrupted, `reaching` makes short connections to another cell. Tenants are moved by `recollect.moves`.
"""
