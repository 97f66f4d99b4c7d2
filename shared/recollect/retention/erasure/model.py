"""The targets and the receipt of an erasure, which removes a person or a graph from every table."""

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from recollect.graph.nodes.model import NodeFields
from recollect.jobs.kinds import FORGET_STATISTICS

REMAINS = {
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
class ErasureTargets:
    """The rows that an erasure deletes: whole lineages, and observations and relations of other lineages.

    `pattern` finds the erased names in a text. `whole` matches a text that is one of them. `created_by`: the subject
    whose writes are all deleted, too.
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
        return {**({"statistics": until} if tables else {}), **REMAINS}


def redacted(fields: NodeFields, pattern: str) -> NodeFields:
    """The fields without the texts, tags and metadata entries in which the pattern is found; name and type stay."""
    names = re.compile(pattern)

    def unless_named(text: str | None) -> str | None:
        return None if text is not None and names.search(text) else text

    return replace(
        fields,
        content=unless_named(fields.content),
        summary=unless_named(fields.summary),
        source=unless_named(fields.source),
        thread=unless_named(fields.thread),
        reason=unless_named(fields.reason),
        tags=tuple(tag for tag in fields.tags if not names.search(tag)),
        metadata={key: value for key, value in fields.metadata.items() if not _has_match(names, (key, value))},
    )


def _has_match(pattern: re.Pattern[str], value: Any) -> bool:
    """Whether the pattern is found in a text or a number inside a JSON value."""
    match value:
        case str():
            return pattern.search(value) is not None
        case bool():
            return False
        case int() | float():
            return pattern.search(_digits(value)) is not None
        case dict():
            return any(_has_match(pattern, item) for item in value.items())
        case list() | tuple():
            return any(_has_match(pattern, item) for item in value)
    return False


def _digits(number: float) -> str:
    """A number without an exponent, as PostgreSQL writes it in the JSON text that queries search for names."""
    return format(Decimal(number if isinstance(number, int) else repr(number)), "f")
