"""Migrations: forward only, applied in order of their names by `recollect migrate`. See CONTRIBUTING.md."""
