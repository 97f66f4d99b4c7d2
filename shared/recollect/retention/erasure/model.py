"""The targets and the receipt of an erasure, which removes a person or a graph from every table."""

from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from recollect.errors import ErrorCode, TooLarge
from recollect.graph.nodes.model import NodeFields
from recollect.jobs.kinds import FORGET_STATISTICS

MAX_NAMES, MAX_NAME_CHARACTERS = 1_000, 16_384
"""Names that a person has and had, and characters of them all. PostgreSQL compiles regular expressions for all forms of
each character, keeps them, and compares them with every text of the graph."""

MAX_LINKED_NAMES = 100
"""How often a name may lead to deleted entities that had further names: each time, all names of the graph are read."""

WHERE_COPIES_REMAIN = {
    "dead_rows": "in PostgreSQL's files and in its statistics catalogue, until VACUUM has processed them",
    "write_ahead_log": "on the server and in its archive, until the segments are recycled or expire",
    "replicas": "until they have replayed the erasure, and VACUUM has processed them too",
    "backups": "until the last backup that was made before the erasure has expired",
    "what_was_read": "answers, exports and logs that clients keep",
}
"""Where erased data still exists, and until when: no SQL statement reaches it."""

ERASE_PERSON = "erase"
"""The name of the operation in the log of a graph."""


@dataclass(frozen=True, slots=True)
class ErasedItem:
    """A lineage, an observation or a relation to erase, and whether it is live."""

    id: UUID
    lives: bool


@dataclass(frozen=True, slots=True)
class NamedHead:
    """A live entity in which an erased name is found, and the bytes of its texts."""

    id: UUID
    bytes: int


@dataclass(frozen=True, slots=True)
class ErasureTargets:
    """The rows that an erasure deletes: whole lineages, and observations and relations of other lineages.

    One of `patterns` finds the erased names in a text. One of `whole` matches a text that is one of them. `created_by`:
    the subject whose writes are all deleted, too.
    """

    names: tuple[str, ...]
    patterns: tuple[str, ...]
    whole: tuple[str, ...]
    created_by: str | None
    lineages: tuple[ErasedItem, ...] = ()
    observations: tuple[ErasedItem, ...] = ()
    relations: tuple[ErasedItem, ...] = ()

    @property
    def node_ids(self) -> list[UUID]:
        """The ids of the lineages."""
        return [lineage.id for lineage in self.lineages]


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many rows of each table an erasure removed, and how many queries still found when it was done.

    `names`: the names of the person. `kept`: rows that still hold one of these names, by table, such as an entity with
    the name inside its own; and versions that the subject wrote and other entities need (`versions_by_subject`).
    """

    revision: int | None
    names: tuple[str, ...] = ()
    erased: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    statistics: tuple[str, ...] = ()
    """Tables whose statistics may still hold erased values, until the job that was started has ended."""

    @property
    def remains(self) -> dict[str, str]:
        """Where erased data still exists, and until when."""
        tables = ", ".join(self.statistics)
        until = f"of {tables}: until the job {FORGET_STATISTICS} has ended, or the next ANALYZE"
        return {**({"statistics": until} if tables else {}), **WHERE_COPIES_REMAIN}


def require_searchable(names: Collection[str]) -> None:
    """Raise TooLarge for more names, or longer ones, than an erasure searches for."""
    if len(names) > MAX_NAMES or sum(map(len, names)) > MAX_NAME_CHARACTERS:
        raise too_many_names(f"{MAX_NAMES:,} names, or {MAX_NAME_CHARACTERS:,} characters in all its names")


def too_many_names(bound: str) -> TooLarge:
    """The error for a person with more names than the bound."""
    return TooLarge(
        f"This entity, with those that were merged into it, has or had more than {bound}: too many to search for. "
        "Delete those of its aliases that do not name the person, and compact the graph, so that former names go, too",
        code=ErrorCode.TOO_COSTLY,
        path="name",
    )


BETWEEN_VALUES = "\x01"
"""Stands between the texts of an entry of the metadata: no part of a word, and no white space of a name."""


def texts_to_search(fields: NodeFields) -> Iterator[str]:
    """The texts of the fields that may name a person, each of which is kept or redacted as a whole.

    An entry of the metadata is one text: its key and the texts and numbers inside its value.
    """
    yield from (text for text in (fields.content, fields.summary, fields.source, fields.thread, fields.reason) if text)
    yield from fields.tags
    yield from (_entry_text(*entry) for entry in fields.metadata.items())


def redacted(fields: NodeFields, named: Container[str]) -> NodeFields:
    """The fields without those of their `texts_to_search` that are in `named`; name and type stay."""

    def unless_named(text: str | None) -> str | None:
        return None if text in named else text

    return replace(
        fields,
        content=unless_named(fields.content),
        summary=unless_named(fields.summary),
        source=unless_named(fields.source),
        thread=unless_named(fields.thread),
        reason=unless_named(fields.reason),
        tags=tuple(tag for tag in fields.tags if tag not in named),
        metadata={key: value for key, value in fields.metadata.items() if _entry_text(key, value) not in named},
    )


def _entry_text(key: str, value: Any) -> str:
    return BETWEEN_VALUES.join((key, *_texts_in(value)))


def _texts_in(value: Any) -> Iterator[str]:
    """The texts, keys and numbers inside a JSON value, as texts."""
    match value:
        case str():
            yield value
        case bool():
            return
        case int() | float():
            yield _digits(value)
        case dict():
            for key, item in value.items():
                yield key
                yield from _texts_in(item)
        case list() | tuple():
            for item in value:
                yield from _texts_in(item)


def _digits(number: float) -> str:
    """A number without an exponent, as PostgreSQL writes it in the JSON text that queries search for names."""
    digits = repr(number)
    return format(Decimal(digits), "f") if "e" in digits else digits
