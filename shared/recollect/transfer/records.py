"""The records that exports write and imports read in any format: entities, facts, relations, positions in the
hierarchy.

A relation names an entity by its name, and a fact, which has no name, by its text, thread and status: two facts in
which these are equal are the same fact. So a relation can be read in any part of a file without the other parts.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from recollect.graph.nodes.labelling import MAX_METADATA_BYTES, MAX_TAG_CHARACTERS, MAX_TAGS, fit_one_node
from recollect.text.digits import has_too_many_digits
from recollect.text.lone_surrogates import is_encodable
from recollect.text.visible import NO_VISIBLE_CHARACTER, is_visible
from recollect.times import explain_time_error, storable
from recollect.transfer.model import MAX_KIND, MAX_NAME, MAX_RELATION_TYPE, MAX_TEXT, ImportProblem, UnreadableLine

R = TypeVar("R", bound="Record")

MAX_LISTED = 600_000
"""Observations or aliases of one item at most. It is more than an export can write into MAX_CELL characters, so
that every item that fits into them is read again."""
MAX_CONTENT = 100_000
MAX_DIFFERENT = 10_000
"""Entities from which one is different, at most: as many pairs as a graph may have."""
MAX_DEPTH = 32
"""Nesting of metadata at most."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Kind = Annotated[str, Meta(max_length=MAX_KIND)]
Statement = Annotated[str, Meta(max_length=MAX_CONTENT)]
"""An observation: as long as an entity's own text may be, since a merge turns such a text into an observation."""
Content = Annotated[str, Meta(min_length=1, max_length=MAX_CONTENT)]
Label = Annotated[str, Meta(max_length=256)]
RelationType = Annotated[str, Meta(min_length=1, max_length=MAX_RELATION_TYPE)]
Summary = Annotated[str, Meta(max_length=MAX_TEXT)]
Tags = Annotated[list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(max_length=MAX_TAGS)]
Importance = Annotated[float, Meta(ge=0, le=10)]
Days = Annotated[float, Meta(gt=0, le=36_500)]
Time = Annotated[datetime, Meta(tz=True)]
ACTIVE = "active"
"""The status of an item that is neither outdated nor archived. A default that is this object is left out."""
Status = Annotated[str, Meta(pattern=r"^(active|outdated|archived)\Z")]
"""A pattern, since the error of a Literal repeats text of the file. `$` would also match before a final newline."""


ObservationStatus = Annotated[str, Meta(pattern=r"^(active|outdated)\Z")]
"""The status of an observation."""
Reason = Annotated[str, Meta(max_length=1_000)]


class Record(Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of the records of a file. Fields with their default values are left out."""


class ObservationRecord(Record, frozen=True):
    """The attributes of an observation: its source and thread, when it was said, when it expires, and the rest."""

    thread: Label | None = None
    at: Time | None = None
    expires_at: Time | None = None
    kind: Kind | None = None
    tags: Tags = []
    importance: Importance | None = None
    source: Label | None = None
    metadata: dict[str, Any] = {}
    status: ObservationStatus = ACTIVE
    reason: Reason | None = None


class EntityRecord(Record, frozen=True):
    """An entity. `said` has one entry for each observation, or none; `parent_id` is the name of the parent.

    `different_from`: names of entities that look like it, and were marked as no duplicates of it.
    """

    name: Name
    entity_type: Kind
    observations: Annotated[list[Statement], Meta(max_length=MAX_LISTED)]
    tags: Tags = []
    importance: Importance | None = None
    created_at: Time | None = None
    last_modified: Time | None = None
    parent_id: Name | None = None
    aliases: Annotated[list[Name], Meta(max_length=MAX_LISTED)] = []
    said: Annotated[list[ObservationRecord], Meta(max_length=MAX_LISTED)] = []
    text: Content | None = None
    summary: Summary | None = None
    status: Status = ACTIVE
    metadata: dict[str, Any] = {}
    source: Label | None = None
    thread: Label | None = None
    at: Time | None = None
    freshness_at: Time | None = None
    ttl_days: Days | None = None
    expires_at: Time | None = None
    reason: Reason | None = None
    different_from: Annotated[list[Name], Meta(max_length=MAX_DIFFERENT)] = []

    def __post_init__(self) -> None:
        if self.said and len(self.said) != len(self.observations):
            raise ValueError("`said` has not as many entries as `observations`")

    @property
    def active_observations(self) -> list[str]:
        """Its observations except the outdated ones, for formats that cannot mark those."""
        if not self.said:
            return self.observations
        pairs = zip(self.observations, self.said, strict=True)
        return [text for text, attributes in pairs if attributes.status == ACTIVE]


class FactRecord(Record, frozen=True):
    """A node without a name: a fact."""

    text: Content
    kind: Kind = ""
    thread: Label | None = None
    at: Time | None = None
    tags: Tags = []
    importance: Importance | None = None
    created_at: Time | None = None
    last_modified: Time | None = None
    summary: Summary | None = None
    status: Status = ACTIVE
    metadata: dict[str, Any] = {}
    source: Label | None = None
    freshness_at: Time | None = None
    ttl_days: Days | None = None
    expires_at: Time | None = None
    reason: Reason | None = None

    @property
    def end(self) -> "FactKey":
        """The key by which relations refer to the fact."""
        return FactKey(text=self.text, thread=self.thread, status=self.status)


class FactKey(Record, frozen=True):
    """The fact at an end of a relation: the text, thread and status by which it is found."""

    text: Content
    thread: Label | None = None
    status: Status = ACTIVE


End = Name | FactKey


class RelationRecord(Record, frozen=True):
    """A relation; its ends are names of entities, or facts."""

    from_: End = field(name="from")
    to: End
    relation_type: RelationType
    metadata: dict[str, Any] = {}
    ordinal: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    created_at: Time | None = None
    last_modified: Time | None = None


class Placement(Record, frozen=True):
    """The parent of an entity, for a parent that comes after the entity."""

    name: Name
    parent_id: Name


AnyRecord = EntityRecord | FactRecord | RelationRecord | Placement


def names_in(record: AnyRecord) -> list[str]:
    """The names by which a record refers to entities, its own included."""
    match record:
        case EntityRecord():
            parent = [] if record.parent_id is None else [record.parent_id]
            return [record.name, *parent, *record.different_from]
        case Placement():
            return [record.name, record.parent_id]
        case RelationRecord():
            return [end for end in (record.from_, record.to) if isinstance(end, str)]
    return []


def renamed(record: AnyRecord, names: Mapping[str, str]) -> AnyRecord:
    """The record with other names in the place of some of those that `names_in` returns."""
    changed: dict[str, Any] = {
        field: names[name]
        for field in ("name", "parent_id", "from_", "to")
        if isinstance(name := getattr(record, field, None), str) and name in names
    }
    if isinstance(record, EntityRecord) and not names.keys().isdisjoint(record.different_from):
        changed["different_from"] = [names.get(name, name) for name in record.different_from]
    return msgspec.structs.replace(record, **changed) if changed else record


def parsed(type_: type[R], value: Any, *, strict: bool = True) -> R:
    """A record from the value of a parser. Raises UnreadableLine; its reason begins with the path of the fault."""
    _refuse_unstorable(value)
    try:
        record = msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        raise UnreadableLine(_fault_message(str(error), type_, value)) from error
    record = _storable(record)
    require_visible(_shown_texts(record))
    _require_small(record, "metadata")
    for index, attributes in enumerate(record.said if isinstance(record, EntityRecord) else ()):
        _require_small(attributes, f"said.{index}.metadata")
    return record


def require_visible(texts: Mapping[str, str | None]) -> None:
    """Raise UnreadableLine for a text, given by its path, that shows nothing."""
    for path, text in texts.items():
        if text is not None and not is_visible(text):
            raise UnreadableLine(f"{path}: {NO_VISIBLE_CHARACTER}" if path else NO_VISIBLE_CHARACTER)


def _shown_texts(record: Record) -> dict[str, str | None]:
    """The names and texts of a record that must show something, by their paths.

    Observations need not: the official server stores blank ones, and its file comes back byte for byte.
    """
    match record:
        case EntityRecord():
            aliases = {f"aliases.{index}": name for index, name in enumerate(record.aliases)}
            return {"name": record.name, "parentId": record.parent_id, "text": record.text, **aliases}
        case FactRecord():
            return {"text": record.text}
        case RelationRecord():
            ends = {"from": record.from_, "to": record.to}
            names = {path: end if isinstance(end, str) else end.text for path, end in ends.items()}
            return {**names, "relationType": record.relation_type}
        case Placement():
            return {"name": record.name, "parentId": record.parent_id}
    return {}


def _require_small(record: Record, path: str) -> None:
    metadata = getattr(record, "metadata", None)
    if metadata and len(msgspec.json.encode(metadata)) > MAX_METADATA_BYTES:
        raise UnreadableLine(f"{path}: more than {MAX_METADATA_BYTES} bytes of JSON")
    if not fit_one_node(getattr(record, "tags", ())):
        raise UnreadableLine(f"{path.removesuffix('metadata')}tags: more than {MAX_TAG_CHARACTERS} characters")


def parsed_leniently(type_: type[R], value: Any, where: str) -> tuple[R, list[ImportProblem]]:
    """A record as `parsed` returns it, without its faulty observations, and the problems of these.

    In every format, an entity loses only the observation that is too long. Raises UnreadableLine for
    any other fault.
    """
    try:
        return parsed(type_, value), []
    except UnreadableLine:
        sound, problems = without_faults(type_, value, where)
        if not problems:
            raise
        return parsed(type_, sound), problems


def statement_fault(text: Any) -> str | None:
    """The reason why a value cannot be an observation; None if it can."""
    try:
        _refuse_unstorable(text)
        msgspec.convert(text, Statement)
    except (UnreadableLine, msgspec.ValidationError) as error:
        return explain_time_error(str(error))
    return None


def without_faults(type_: type[Record], value: Any, where: str) -> tuple[Any, list[ImportProblem]]:
    """The value without its faulty observations and their entries in `said`, and the problems of these."""
    texts = value.get("observations") if type_ is EntityRecord and isinstance(value, dict) else None
    if not isinstance(texts, list) or len(texts) > MAX_LISTED:
        return value, []
    faults = {index: fault for index, text in enumerate(texts) if (fault := statement_fault(text))}
    sound = {**value, "observations": [text for index, text in enumerate(texts) if index not in faults]}
    attributes = value.get("said")
    if isinstance(attributes, list) and len(attributes) == len(texts):
        sound["said"] = [item for index, item in enumerate(attributes) if index not in faults]
    return sound, [
        ImportProblem(f"{where}.observations.{index}", fault, of_part=True) for index, fault in faults.items()
    ]


_FIELDS = frozenset(
    name
    for type_ in (EntityRecord, ObservationRecord, FactRecord, FactKey, RelationRecord, Placement)
    for name in type_.__struct_encode_fields__
)
"""Keys that errors name. Any other key is text of the file: errors give its number instead."""

_PATH = re.compile(rf" - at `\$((?:\[(?:\d+|\.\.\.)\]|\.(?:{'|'.join(sorted(_FIELDS))}))+)`$")
"""The path at the end of msgspec's message. A key of the file that looks like a path is not at the end."""


def _fault_message(message: str, type_: type[Record], value: Any) -> str:
    """The message of msgspec with the path first, in the form of the tools: `observations.2: Expected …`."""
    match = _PATH.search(message)
    message = explain_time_error(message[: match.start()] if match else message)
    path = match[1].replace("[", ".").replace("]", "").replace("...", "*").strip(".") if match else ""
    if message.startswith("Object contains unknown field `"):
        unknown = (number for number, key in enumerate(value, 1) if key not in type_.__struct_encode_fields__)
        return f"{path or f'field {next(unknown)}'}: Unknown"
    if message.startswith(missing := "Object missing required field `"):
        return f"{f'{path}.' if path else ''}{message.removeprefix(missing).rstrip('`')}: Required"
    return f"{path}: {message}" if path else message


def _refuse_unstorable(value: Any) -> None:
    for path, text in _texts(value, ""):
        if "\0" in text or not is_encodable(text):
            where = path.strip(".")
            raise UnreadableLine(
                f"{f'{where}: ' if where else ''}holds a NUL or half a character (a lone surrogate), which cannot be "
                "stored"
            )


def _storable(record: R, path: str = "") -> R:
    """The record as it is stored. Raises UnreadableLine for a time outside the calendar.

    An empty thread or source becomes None: cells cannot tell them apart, and a relation finds a fact by its thread.
    """
    changed: dict[str, Any] = {}
    for field_name, name in zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True):
        value = getattr(record, field_name)
        if value == "" and field_name in ("thread", "source"):
            changed[field_name] = None
        elif isinstance(value, FactKey):
            changed[field_name] = _storable(value)
        elif isinstance(value, datetime):
            try:
                moment = storable(value)
            except OverflowError:
                raise UnreadableLine(f"{path}{name}: outside the years 1 to 9999") from None
            if moment != value:
                changed[field_name] = moment
    if isinstance(record, EntityRecord) and record.said:
        changed["said"] = [_storable(item, f"said.{index}.") for index, item in enumerate(record.said)]
    return msgspec.structs.replace(record, **changed) if changed else record


def _texts(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > MAX_DEPTH:
        raise UnreadableLine(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        yield path, value
    elif (isinstance(value, float) and not isfinite(value)) or (isinstance(value, int) and has_too_many_digits(value)):
        where = path.strip(".")
        raise UnreadableLine(f"{f'{where}: ' if where else ''}is a number that cannot be stored")
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items(), 1):
            where = f"{path}.{key if key in _FIELDS else f'field {number}'}"
            yield where, key
            yield from _texts(item, where, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}.{index}", depth + 1)
