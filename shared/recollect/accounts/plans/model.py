"""A plan and its limits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from recollect.errors import InvalidInput

UNLIMITED = "unlimited"
"""The default plan of a tenant: it has no limits, and none can be set."""

MAX_LIMIT = 2**53 - 1
"""The largest integer that every JSON client can read."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tenant may have and ask for; None is no limit.

    `nodes_per_graph`: entities, facts and placeholders. `stored_bytes`: with rows, history and the log.
    `embeddings_per_day`: passages that are given vectors from one midnight UTC to the next.
    """

    name: str
    graphs: int | None = None
    nodes_per_graph: int | None = None
    observations: int | None = None
    stored_bytes: int | None = None
    embeddings_per_day: int | None = None
    requests_per_minute: int | None = None
    key_requests_per_minute: int | None = None
    concurrent_calls: int | None = None


LIMITS = tuple(field.name for field in fields(Plan) if field.name != "name")
"""The names of the limits."""


def checked_limits(name: str, limits: Mapping[str, int | None]) -> dict[str, int | None]:
    """The limits, if a plan of this name may have them; raises InvalidInput."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "A plan's name has 1 to 63 of the characters a-z, 0-9 and -, and does not begin or end with -", path="name"
        )
    for limit, value in limits.items():
        if value is not None and not 1 <= value <= MAX_LIMIT:
            raise InvalidInput(f"A limit is a number from 1 to {MAX_LIMIT}", path=limit)
    if name == UNLIMITED and any(value is not None for value in limits.values()):
        raise InvalidInput(f"The plan {UNLIMITED!r} cannot have limits. Set them in another plan.", path="name")
    return dict(limits)
