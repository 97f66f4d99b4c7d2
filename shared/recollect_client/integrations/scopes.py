"""Tags that keep apart what belongs to different users, sessions and namespaces of a framework."""

from hashlib import sha256

MAX_TEXT = 10_000
"""Characters of a memory's text, at most."""

MAX_BATCH = 100
"""Memories that are stored, or forgotten, by one request, at most."""

_READABLE = 80


def scope_tag(kind: str, *parts: str) -> str:
    """A tag for exactly these parts, whose beginning people can read.

    Tags are compared in any case; the digest in it is of the parts as they are.
    """
    digest = sha256("\0".join(parts).encode()).hexdigest()[:24]
    return f"{kind}:{'/'.join(parts)[:_READABLE]}:{digest}"
