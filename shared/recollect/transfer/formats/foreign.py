"""What the readers of other systems' exports share: their times, and records made of what they say."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import EntityRecord, FactRecord, RelationRecord, kept

Found = Iterator[ParsedRecord | ImportProblem]


def moment(value: Any) -> Any:
    """A time as records take it: one that names no zone is of UTC. What is no time stays, for the record to refuse."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return value
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


def saying(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def text_of(item: Any, *names: str) -> str:
    """The text that an item has under the first of the names that it has. Raises UnreadableLine."""
    given = saying(item) if isinstance(item, dict) else {}
    value = next((given[name] for name in names if name in given), None)
    if not isinstance(value, str):
        raise UnreadableLine(f"{names[0]}: Required")
    return value


def entity(where: str, name: str, kind: str = "", observations: tuple[str, ...] = (), **more: Any) -> Found:
    """The entity; of an observation that cannot be stored, its problem. Raises UnreadableLine."""
    fields = {"name": name, "entityType": kind, "observations": list(observations)} | saying(more)
    record, problems = kept(EntityRecord, fields, where)
    yield from problems
    yield ParsedRecord(where, record)


def fact(where: str, text: str, **more: Any) -> ParsedRecord:
    """The fact. Raises UnreadableLine."""
    return ParsedRecord(where, kept(FactRecord, {"text": text} | saying(more), where)[0])


def relation(where: str, from_: Any, to: str, type_: str, **more: Any) -> ParsedRecord:
    """The relation, from a name or a fact. Raises UnreadableLine."""
    fields = {"from": from_, "to": to, "relationType": type_} | saying(more)
    return ParsedRecord(where, kept(RelationRecord, fields, where)[0])


def end_of(fact: ParsedRecord) -> dict[str, Any]:
    """How a relation means a fact."""
    assert isinstance(fact.record, FactRecord)
    key = fact.record.end
    return {"text": key.text} | saying({"thread": key.thread, "status": key.status})
