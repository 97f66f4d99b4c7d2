"""The present schema, in files to read: each table, view, function and policy once, by capability.

A change is made twice: in these files, and in a new migration. A test compares the two: a database that all
migrations made, and one that was made of these files. The first migration is made from the files, by `make baseline`.
"""

from importlib.resources import files

BEFORE = ("roles", "extensions")
"""What `recollect migrate` sees to before the first migration, since it needs other rights than the owner's."""

FILES = (
    "planner",
    "tenants",
    "graphs",
    "api_keys",
    "identity_providers",
    "people",
    "oauth",
    "audit",
    "webhooks",
    "idempotency",
    "names",
    "nodes",
    "observations",
    "relations",
    "stored_bytes",
    "passages",
    "history",
    "search",
    "recall",
    "jobs",
    "duplicates",
    "distilling",
    "operators",
    "cells",
    "worker",
    "erasure",
    "versions",
    "grants",
    "comments",
)
"""The order in which the files are loaded: each uses only what those before it make."""


def read(name: str) -> str:
    """The text of the file with this name, without `.sql`."""
    return (files(__package__) / f"{name}.sql").read_text("utf-8")


def statements() -> str:
    """The whole schema, as the owner creates it in an empty database with our roles, extensions and schema."""
    return "\n".join(read(name) for name in FILES)
