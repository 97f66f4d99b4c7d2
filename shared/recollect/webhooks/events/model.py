"""Types of events, and the filters of webhooks.

To add a type: a name here, a query that finds its events in the tables, a function in `service` that makes an event of
a row, and its part of `tenants_with_webhook_news` (a migration). Its data holds ids, counts and words of the code;
never stored text or names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.webhooks.deliveries.model import GRAPH_CHANGED


class EventType(StrEnum):
    """The types of events that a webhook can receive. `webhook.test` is sent on request only and cannot be subscribed
    to.
    """

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
    """The types of these names; unknown names, of a newer version, are ignored."""
    return frozenset(EventType(name) for name in names if name in set(EventType))


GRAPH_EVENTS = frozenset({EventType.GRAPH_CHANGED, EventType.GRAPH_CREATED, EventType.GRAPH_DELETED})
JOB_EVENTS = frozenset({EventType.JOB_FINISHED, EventType.JOB_FAILED})
KEY_EVENTS = frozenset({EventType.KEY_CREATED, EventType.KEY_REVOKED})

OVERLAP = timedelta(minutes=10)
"""How far back each look reads jobs, keys and members again: a transaction may commit after a look that saw a later
time. No transaction takes this long."""

FOUND_AT_ONCE = 1_000
"""The most events of one webhook that one look finds."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The events that a webhook gets: their types, their graphs (None: all), and from which time on."""

    id: UUID
    event_types: frozenset[EventType]
    graph_ids: tuple[UUID, ...] | None
    since: datetime
    now: datetime

    def wants(self, *types: EventType) -> bool:
        """Whether it gets one of these types."""
        return not self.event_types.isdisjoint(types)


@dataclass(frozen=True, slots=True)
class GraphNews:
    """New revisions of a graph for a webhook."""

    graph_id: UUID
    after_revision: int
    revision: int
    at: datetime


@dataclass(frozen=True, slots=True)
class GraphMade:
    """A new graph for a webhook."""

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
    """A key that was created or revoked."""

    id: UUID
    event_type: str
    kind: str
    created_by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A person who became a member, with their present role."""

    person_id: UUID
    role: str
    created_at: datetime
    source: str


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """A person who is no member any more, with their last role. `entry_id`: the entry of the audit log about it."""

    entry_id: UUID
    person: str
    role: str
    at: datetime
