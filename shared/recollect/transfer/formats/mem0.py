"""All memories of Mem0 (`get_all`), from its platform or its library.

    {"results": [{"id": "…", "memory": "Likes tea", "user_id": "ada", "categories": ["food"], "created_at": "…"}],
     "relations": [{"source": "ada", "relationship": "likes", "target": "tea"}]}

Or the list of memories alone, as older versions returned it. Fields about the page (`count`, `next`) are skipped. The
sources are https://docs.mem0.ai/api-reference/memory and `Memory.get_all` of https://github.com/mem0ai/mem0.

A memory becomes a fact, related to the entity to which it belongs (`user_id`, `agent_id`, `app_id`). Its run is
the thread. `relations`, which only versions with a graph store have, become relations between entities.
"""

from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from recollect.errors import InvalidInput
from recollect.graph.relations.model import MENTIONS_ENTITY
from recollect.transfer.formats.decoding import ParsedRecord, Read
from recollect.transfer.formats.foreign import Found, end_of, entity, fact, moment, relation, text_of, without_empty
from recollect.transfer.formats.json_stream import JsonStream
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import EntityRecord

SOURCE = "mem0"
KINDS = {"user_id": "user", "agent_id": "agent", "app_id": "app"}
"""The fields that name the owner of a memory, and the types of these entities."""
METADATA_FIELDS = ("id", "actor_id", "role", "attributed_to", "immutable")
"""The fields that are kept in the metadata of a fact."""


def read(texts: Iterator[str]) -> Read:
    """Yield the items of the file. Raises InvalidInput for a file that is not JSON of that shape."""
    source, seen, parts = JsonStream(texts), set[int](), 0
    if source.begins_list():
        yield from _read_part(source, "results", seen)
    else:
        for part in source.names():
            if part in _PARTS:
                yield from _read_part(source, part, seen)
                parts += 1
            else:
                source.skip()
        if not parts:
            raise InvalidInput(f"Has none of the parts {', '.join(_PARTS)}", path=source.location)
    source.end()


def _read_part(source: JsonStream, part: str, seen: set[int]) -> Read:
    for number, item in enumerate(source.values()):
        where = f"{part}.{number}"
        try:
            found = list(_PARTS[part](where, item, seen))
        except UnreadableLine as error:
            yield ImportProblem(where, error.reason)
            continue
        records = [parsed.record for parsed in found if isinstance(parsed, ParsedRecord)]
        seen.update(hash(record.name) for record in records if isinstance(record, EntityRecord))
        yield from found


def _memory(where: str, item: Any, seen: set[int]) -> Found:
    text = text_of(item, "memory", "data")
    metadata = item.get("metadata")
    record = fact(
        where,
        text,
        thread=item.get("run_id"),
        tags=item.get("categories"),
        createdAt=moment(item.get("created_at")),
        at=moment(item.get("updated_at") or item.get("created_at")),
        expiresAt=_expiry_of(item.get("expiration_date")),
        source=SOURCE,
        metadata=without_empty({name: item.get(name) for name in METADATA_FIELDS})
        | (metadata if isinstance(metadata, dict) else {}),
    )
    yield record
    for field, kind in KINDS.items():
        if name := item.get(field):
            yield from _entity(where, name, kind, seen)
            yield relation(where, end_of(record), name, MENTIONS_ENTITY)


def _relation(where: str, item: Any, seen: set[int]) -> Found:
    source, target = text_of(item, "source"), text_of(item, "target", "destination")
    type_ = text_of(item, "relationship", "relation")
    kinds = without_empty(
        {source: item.get("source_type"), target: item.get("target_type", item.get("destination_type"))}
    )
    for name in dict.fromkeys((source, target)):
        yield from _entity(where, name, kinds.get(name, ""), seen)
    yield relation(where, source, target, type_)


def _entity(where: str, name: Any, kind: str, seen: set[int]) -> Found:
    """The entity, unless the file named it before."""
    if not isinstance(name, str) or hash(name) not in seen:
        yield from entity(where, name, kind)


def _expiry_of(day: Any) -> Any:
    """The expiry of a memory that is valid through this day; None (never) for the last day of the calendar."""
    try:
        last = date.fromisoformat(day)
    except (TypeError, ValueError):
        return moment(day)
    if last == date.max:
        return None
    return moment(datetime.combine(last + timedelta(days=1), time()).isoformat())


_PARTS: dict[str, Callable[[str, Any, set[int]], Found]] = {
    "results": _memory,
    "memories": _memory,
    "relations": _relation,
}
