"""Code that the readers of other systems' exports share: it reads times and fields, and makes records of them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import EntityRecord, FactRecord, RelationRecord, parsed_leniently

Found = Iterator[ParsedRecord | ImportProblem]


def moment(value: Any) -> Any:
    """A time as records take it; without a zone, it is UTC. Other values stay, and the record refuses them."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return value
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without empty values."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def text_of(item: Any, *names: str) -> str:
    """The text of the first of these fields that the item has. Raises UnreadableLine if it has none."""
    fields = without_empty(item) if isinstance(item, dict) else {}
    value = next((fields[name] for name in names if name in fields), None)
    if not isinstance(value, str):
        raise UnreadableLine(f"{names[0]}: Required")
    return value


def entity(where: str, name: str, kind: str = "", observations: tuple[str, ...] = (), **more: Any) -> Found:
    """The entity, after the problems of observations that cannot be stored. Raises UnreadableLine."""
    fields = {"name": name, "entityType": kind, "observations": list(observations)} | without_empty(more)
    record, problems = parsed_leniently(EntityRecord, fields, where)
    yield from problems
    yield ParsedRecord(where, record)


def fact(where: str, text: str, **more: Any) -> ParsedRecord:
    """The fact. Raises UnreadableLine."""
    return ParsedRecord(where, parsed_leniently(FactRecord, {"text": text} | without_empty(more), where)[0])


def relation(where: str, from_: Any, to: str, type_: str, **more: Any) -> ParsedRecord:
    """The relation, from a name or a fact. Raises UnreadableLine."""
    fields = {"from": from_, "to": to, "relationType": type_} | without_empty(more)
    return ParsedRecord(where, parsed_leniently(RelationRecord, fields, where)[0])


def end_of(fact: ParsedRecord) -> dict[str, Any]:
    """The fields by which a relation refers to a fact."""
    assert isinstance(fact.record, FactRecord)
    key = fact.record.end
    return {"text": key.text} | without_empty({"thread": key.thread, "status": key.status})
