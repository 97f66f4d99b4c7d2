"""A person, a graph or a tenant is removed from every table."""

import re
from dataclasses import dataclass, field, replace
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
"""Where what was erased is still, and until when: no statement of SQL reaches it."""

ERASE_PERSON = "erase"
"""The operation, as the log of a graph tells it."""


@dataclass(frozen=True, slots=True)
class ErasedItem:
    """A lineage, an observation or a relation to erase, and whether it is live."""

    id: UUID
    lives: bool


@dataclass(frozen=True, slots=True)
class ErasureTargets:
    """What an erasure takes: whole lineages, and observations and relations of others.

    `pattern` finds the erased names in texts, `whole` texts that are one of them; `created_by` is the subject whose
    writings go, too.
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
        """The lineages' ids."""
        return [lineage.id for lineage in self.lineages]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure removed, by table, and what it left, as counted by queries when it was done.

    `names`: those that the person was known by. `kept`: rows that still hold one of them, by table, such as an entity
    that has one in its own name; and what the subject wrote that others' entities rest on (`versions_by_subject`).
    """

    revision: int | None
    names: tuple[str, ...] = ()
    erased: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    statistics: tuple[str, ...] = ()
    """Tables whose statistics may still hold a piece of it, until the job that was started has ended."""

    @property
    def remains(self) -> dict[str, str]:
        """Where what was erased is still, and until when."""
        waiting = ", ".join(self.statistics)
        told = f"of {waiting}: until the job {FORGET_STATISTICS} has ended, or the next ANALYZE"
        return {**({"statistics": told} if waiting else {}), **REMAINS}


def redacted(fields: NodeFields, pattern: str) -> NodeFields:
    """The fields without those texts, tags and entries of the metadata that name somebody; name and type stay."""
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
    """Whether a text within a value of JSON names somebody."""
    match value:
        case str():
            return found.search(value) is not None
        case dict():
            return any(_names(found, item) for item in value.items())
        case list() | tuple():
            return any(_names(found, item) for item in value)
    return False
