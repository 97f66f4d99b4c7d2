"""Items that have expired since a file was written are skipped on import, and so are items that refer to them.

A relation of such a fact, or a child of such an entity, may come in a later batch, which knows nothing of the fact or
the entity. So each item carries the earliest expiry of the items to which it refers, as far as the file has it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.records import AnyRecord, EntityRecord, FactKey, FactRecord, Placement, RelationRecord

MIN_REMAINING_LIFE = timedelta(minutes=1)
"""Items that expire sooner are not imported: they would expire before all that belongs to them is imported."""

SAFE_REMAINING_LIFE = timedelta(days=1)
"""Items that expire later are still there when the items that refer to them have been read and written."""

MAX_NOTED = 100_000
"""Records of one file that are noted, at most (some 15 MB): files are larger than memory."""


def is_expired(record: AnyRecord, now: datetime) -> bool:
    """Whether an entity or a fact has expired, or will within MIN_REMAINING_LIFE."""
    return isinstance(record, EntityRecord | FactRecord) and _is_past(record.expires_at, now)


def refers_to_expired(until: datetime | None, now: datetime) -> bool:
    """Whether something that an item refers to has expired, by the item's `until`."""
    return _is_past(until, now)


def earlier(first: datetime | None, second: datetime | None) -> datetime | None:
    """The earlier of two moments, where None is never."""
    return min((moment for moment in (first, second) if moment is not None), default=None)


@dataclass(slots=True)
class ExpiringRecords:
    """The entities and facts of a file that expire within SAFE_REMAINING_LIFE, by hash: a name or text may be long.

    Only the first MAX_NOTED of a file are noted; items that refer to others become problems.
    """

    ends: dict[int, datetime] = field(default_factory=dict)

    def note(self, record: AnyRecord) -> None:
        """Add an entity or a fact. Of several with one name or text, the last counts."""
        if not isinstance(record, EntityRecord | FactRecord):
            return
        key = _key(record.name if isinstance(record, EntityRecord) else record.end)
        if record.expires_at is None or record.expires_at > datetime.now(UTC) + SAFE_REMAINING_LIFE:
            self.ends.pop(key, None)
        elif key in self.ends or len(self.ends) < MAX_NOTED:
            self.ends[key] = record.expires_at

    def with_expiry(self, item: ParsedRecord) -> ParsedRecord:
        """The item with the earliest expiry of the items to which it refers."""
        until = item.until
        for end in _referenced(item.record):
            until = earlier(until, self.ends.get(_key(end)))
        return item if until == item.until else replace(item, until=until)


def with_expiries(items: Sequence[ParsedRecord]) -> list[ParsedRecord]:
    """The items of a batch, each with the earliest expiry of the items to which it refers, before or after it."""
    expiring = ExpiringRecords()
    for item in items:
        expiring.note(item.record)
    return [expiring.with_expiry(item) for item in items]


def _is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now + MIN_REMAINING_LIFE


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
