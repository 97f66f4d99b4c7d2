"""Erasure: a person, a graph or a tenant is removed from every table."""

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from recollect.graph.nodes.model import NodeFields
from recollect.jobs.kinds import FORGET_STATISTICS

REMAINS = {
    "dead_rows": "in PostgreSQL's files, and in its catalogue of statistics, until VACUUM has been there",
    "write_ahead_log": "on the server and in its archive, until the segments are recycled or expire",
    "replicas": "until they have replayed the erasure, and VACUUM has been there too",
    "backups": "until the last one that was made before has expired",
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
class ErasureTargets:
    """What an erasure deletes: whole lineages, and observations and relations of other lineages.

    `pattern` finds the erased names in a text. `whole` matches a text that is one of them. `created_by`: all that this
    subject wrote is deleted, too.
    """

    names: tuple[str, ...]
    pattern: str
    whole: str
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
    """How many rows of each table an erasure removed, and what queries still found when it was done.

    `names`: the names of the person. `kept`: rows that still hold one of these names, by table, such as an entity with
    the name inside its own; and versions that the subject wrote and other entities need (`versions_by_subject`).
    """

    revision: int | None
    names: tuple[str, ...] = ()
    erased: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    statistics: tuple[str, ...] = ()
    """Tables whose statistics may still hold a piece of it, until the job that was started has ended."""

    @property
    def remains(self) -> dict[str, str]:
        """Where erased data still exists, and until when."""
        waiting = ", ".join(self.statistics)
        told = f"of {waiting}: until the job {FORGET_STATISTICS} has ended, or the next ANALYZE"
        return {**({"statistics": told} if waiting else {}), **REMAINS}


def redacted(fields: NodeFields, pattern: str) -> NodeFields:
    """The fields without the texts, tags and metadata entries in which the pattern is found; name and type stay."""
    found = re.compile(pattern)

    def kept(text: str | None) -> str | None:
        return None if text is not None and found.search(text) else text

    return replace(
        fields,
        content=kept(fields.content),
        summary=kept(fields.summary),
        source=kept(fields.source),
        thread=kept(fields.thread),
        reason=kept(fields.reason),
        tags=tuple(tag for tag in fields.tags if not found.search(tag)),
        metadata={key: value for key, value in fields.metadata.items() if not _names(found, (key, value))},
    )


def _names(found: re.Pattern[str], value: Any) -> bool:
    """Whether the pattern is found in a text or a number inside a JSON value."""
    match value:
        case str():
            return found.search(value) is not None
        case bool():
            return False
        case int() | float():
            return found.search(_digits(value)) is not None
        case dict():
            return any(_names(found, item) for item in value.items())
        case list() | tuple():
            return any(_names(found, item) for item in value)
    return False


def _digits(number: float) -> str:
    """A number as PostgreSQL tells it of a JSON document, in which queries look for names: without an exponent."""
    return format(Decimal(number if isinstance(number, int) else repr(number)), "f")
