"""Events: which there are, and who is told of them.

To add one: a name here, a query that finds it in what is stored, a function in `service` that makes it of a row, and
its part of `tenants_with_webhook_news` (a migration). Its data holds ids, counts and words of ours; never stored text
or names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.webhooks.deliveries.model import GRAPH_CHANGED


class EventType(StrEnum):
    """What a webhook may be told of. `webhook.test` is sent when it is asked for, and is no type to choose."""

    GRAPH_CHANGED = GRAPH_CHANGED
    GRAPH_CREATED = "graph.created"
    GRAPH_DELETED = "graph.deleted"
    JOB_FINISHED = "job.finished"
    JOB_FAILED = "job.failed"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    MEMBER_JOINED = "member.joined"
    MEMBER_REMOVED = "member.removed"


TEST = "webhook.test"


def known_types(names: Iterable[str]) -> frozenset[EventType]:
    """The types of these names; one that a newer version knows is passed over."""
    return frozenset(EventType(name) for name in names if name in set(EventType))


GRAPH_EVENTS = frozenset({EventType.GRAPH_CHANGED, EventType.GRAPH_CREATED, EventType.GRAPH_DELETED})
JOB_EVENTS = frozenset({EventType.JOB_FINISHED, EventType.JOB_FAILED})
KEY_EVENTS = frozenset({EventType.KEY_CREATED, EventType.KEY_REVOKED})

OVERLAP = timedelta(minutes=10)
"""So far back jobs, keys and members are looked at again: the transaction that wrote a time may commit after a later
one was seen. None runs for so long."""

FOUND_AT_ONCE = 1_000
"""Events of one webhook that one look finds, at most."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What a webhook is told of: which events, of which graphs (None: of all), and from which time on."""

    id: UUID
    event_types: frozenset[EventType]
    graph_ids: tuple[UUID, ...] | None
    since: datetime
    now: datetime

    def wants(self, *types: EventType) -> bool:
        """Whether it is told of one of these."""
        return not self.event_types.isdisjoint(types)


@dataclass(frozen=True, slots=True)
class GraphNews:
    """Revisions of a graph that a webhook was not told of."""

    graph_id: UUID
    after_revision: int
    revision: int
    at: datetime


@dataclass(frozen=True, slots=True)
class GraphMade:
    """A graph that a webhook did not know."""

    graph_id: UUID
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job that ended."""

    id: UUID
    kind: str
    graph_id: UUID | None
    status: str
    error_code: str | None
    created_by: str
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key that was made or revoked."""

    id: UUID
    event_type: str
    kind: str
    created_by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A person who became a member, with their role now."""

    person_id: UUID
    role: str
    created_at: datetime
    source: str


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """A person who is no member any more, with the role that they had. `entry_id`: of the audit log, which tells it."""

    entry_id: UUID
    person: str
    role: str
    at: datetime
