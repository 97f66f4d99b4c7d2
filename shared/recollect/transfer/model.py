"""The options and results of imports and exports, and the state that an export reads."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MAX_NAME = 512
MAX_KIND = 256
MAX_TEXT = 10_000
MAX_RELATION_TYPE = 256
"""Characters at most, as the tools have it."""

MAX_LINES = 1_000
MAX_OBSERVATIONS = 10_000
"""The most that one request may hold: it is one transaction, for which the other writers of the graph wait."""

TOO_LARGE_ADVICE = (
    "Use `recollect import`, several requests to POST /v1/graphs/{graph}/import, or a job: "
    "POST /v1/graphs/{graph}/imports"
)
"""Advice for a file that is too large for one call."""

REVISION_HEADER = "Recollect-Revision"
FACTS_HEADER = "Recollect-Facts-Left-Out"
"""Headers of an export over HTTP: its revision, and how many facts the format leaves out."""


PROBLEMS_TYPE = "application/x-ndjson"
"""The output of an import: one line for each thing that was not imported."""


class UnreadableLine(Exception):
    """A line that cannot be imported. `reason` is for people and never holds text of the line."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Strategy(StrEnum):
    """What happens to an entity or fact of the file that exists already.

    Existing relations stay; `replace` and `merge` give them the metadata of the file.
    """

    SKIP = "skip"
    """It stays as it is."""
    REPLACE = "replace"
    """It becomes as the file has it; parts that the file does not have are removed."""
    MERGE = "merge"
    """It gets missing parts: observations, tags, aliases, metadata, a type, a parent; and the greater importance."""
    FAIL = "fail"
    """Nothing is imported."""


CYCLE = "it would be below itself in the hierarchy"
NO_SUCH_PARENT = "no entity has this name"
"""The reason why an entity did not get a parent."""


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something that was not imported: its position in the file, and why.

    `of_part`: it is a part of an item; the item was imported without it.
    """

    where: str
    reason: str
    of_part: bool = False


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many entities, facts, relations and observations an import created, updated and skipped.

    `problems`: the items and parts that it left out.
    """

    entities_created: int = 0
    entities_updated: int = 0
    entities_skipped: int = 0
    observations_added: int = 0
    facts_created: int = 0
    facts_updated: int = 0
    facts_skipped: int = 0
    relations_created: int = 0
    relations_updated: int = 0
    relations_skipped: int = 0
    problems: tuple[ImportProblem, ...] = ()

    @property
    def skipped(self) -> int:
        """How many entities, facts and relations of the file changed nothing."""
        return self.entities_skipped + self.facts_skipped + self.relations_skipped

    def __add__(self, other: "ImportResult") -> "ImportResult":
        """The sum of both."""
        return ImportResult(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """Which entities and facts to export, with the relations between them. None and empty select all.

    `tags`: those with any of these, in upper or lower case. `since`, `until`: those whose last change is in this time.
    """

    kind: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a graph that an export reads: at `revision` and at the time `at`, with the counts of that state."""

    graph_id: UUID
    revision: int
    at: datetime
    entities: int
    facts: int
    placeholders: int
    relations: int
