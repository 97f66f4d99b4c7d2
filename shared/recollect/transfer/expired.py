"""What has expired since a file was written is skipped on import, and so is what hangs on it.

A relation of such a fact, or a child of such an entity, may come in a later batch, which knows nothing of the fact or
the entity. So each item says until when there is what it refers to, as far as the file tells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.records import AnyRecord, EntityRecord, FactKey, FactRecord, Placement, RelationRecord

LEAST = timedelta(minutes=1)
"""What expires sooner is not imported: it would be gone before all that belongs to it is there."""

SOON = timedelta(days=1)
"""What expires later is not over before what hangs on it was read and written."""

MAX_NOTED = 100_000
"""Records that are noted of one file at most, some 15 MB: a file is read without holding it."""


def is_over(record: AnyRecord, now: datetime) -> bool:
    """Whether an entity or a fact has expired, or will within LEAST."""
    return isinstance(record, EntityRecord | FactRecord) and _is_past(record.expires_at, now)


def hangs_on_expired(until: datetime | None, now: datetime) -> bool:
    """Whether something that an item refers to is over: what an item's `until` says."""
    return _is_past(until, now)


def sooner(one: datetime | None, other: datetime | None) -> datetime | None:
    """The earlier of two moments, where None is never."""
    return min((moment for moment in (one, other) if moment is not None), default=None)


@dataclass(slots=True)
class ExpiringRecords:
    """When the entities and facts of a file expire that do soon, by hashes: a name or a text may be long.

    Of a file of very many such, the first MAX_NOTED are known; what hangs on others is broken.
    """

    ends: dict[int, datetime] = field(default_factory=dict)

    def note(self, record: AnyRecord) -> None:
        """Add an entity or a fact. Of several of one name or text the last holds."""
        if not isinstance(record, EntityRecord | FactRecord):
            return
        key = _key(record.name if isinstance(record, EntityRecord) else record.end)
        if record.expires_at is None or record.expires_at > datetime.now(UTC) + SOON:
            self.ends.pop(key, None)
        elif key in self.ends or len(self.ends) < MAX_NOTED:
            self.ends[key] = record.expires_at

    def dated(self, item: ParsedRecord) -> ParsedRecord:
        """The item with the moment until which there is all that it refers to."""
        until = item.until
        for end in _referenced(item.record):
            until = sooner(until, self.ends.get(_key(end)))
        return item if until == item.until else replace(item, until=until)


def all_dated(items: Sequence[ParsedRecord]) -> list[ParsedRecord]:
    """The items of a batch, each with the moment until which there is all that it refers to, in whatever order."""
    expiring = ExpiringRecords()
    for item in items:
        expiring.note(item.record)
    return [expiring.dated(item) for item in items]


def _is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now + LEAST


def _key(end: str | FactKey) -> int:
    return hash(end) if isinstance(end, str) else hash((end.text, end.thread, end.status))


def _referenced(record: AnyRecord) -> Iterator[str | FactKey]:
    match record:
        case EntityRecord(parent_id=str() as parent):
            yield parent
        case Placement():
            yield from (record.name, record.parent_id)
        case RelationRecord():
            yield from (record.from_, record.to)
