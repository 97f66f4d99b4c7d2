"""What a tenant called and what its graphs hold, as tool and route tell it."""

from datetime import datetime

from msgspec import Struct

from recollect.accounts.usage.model import StoredCounts, UsageRow


class UsageBody(Struct, frozen=True):
    """What was counted from `since` on, for an hour, a day, a month or all.

    `kind` is `tool`, `resource`, `route` or `work` (of the worker). `passages`: given their vectors.
    """

    since: datetime
    kind: str
    name: str
    calls: int
    errors: int
    passages: int
    bytes_received: int


class StoredBody(Struct, frozen=True):
    """What a graph holds now; `passage_bytes` is about right, by a sample."""

    graph: str
    entities: int
    facts: int
    observations: int
    relations: int
    passages: int
    passage_bytes: int


def usage_body(row: UsageRow) -> UsageBody:
    """What was counted, as tool and route tell it."""
    return UsageBody(row.since, row.kind, row.name, row.calls, row.errors, row.passages, row.bytes_received)


def stored_body(one: StoredCounts) -> StoredBody:
    """What is stored, as tool and route tell it."""
    return StoredBody(
        one.graph, one.entities, one.facts, one.observations, one.relations, one.passages, one.passage_bytes
    )
