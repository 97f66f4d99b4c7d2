"""Addresses of routes, with something in the place of what they name."""

import re
from uuid import UUID, uuid4

OPEN_TO_ALL = {"/v1/keys/report"}
"""Routes under /v1 that ask for no credential, with tests of their own."""


def stand_ins(path: str, *, graph: str = "nowhere", id_: UUID | str | None = None) -> dict[str, str]:
    """What a path names: a graph, and an id (by default one that nobody has) wherever it has one, a node's too."""
    ids = {name: str(id_ or uuid4()) for name in re.findall(r"\{(\w+_id)\}", path)}
    return {"name": graph, "node": str(id_ or "nobody"), **ids}
