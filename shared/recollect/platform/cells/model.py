"""How many tenants and credentials are remembered by their cell, and by what."""

import hashlib
from uuid import UUID

REMEMBERED = 100_000
"""Tenants, and credentials, whose cell a process remembers."""

ELSEWHERE_SECONDS = 2.0
"""How long a person waits for what is done in other cells, best effort."""


def memory_key(by: str, person_id: UUID | None) -> bytes:
    """By what the cell of a secret or a name is remembered, which somebody asks for: not the secret itself."""
    return hashlib.sha256(f"{person_id}:{by}".encode()).digest()
