"""What a transfer carries, what became of it, and the state that an export reads."""

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
"""What one request may hold: it is one transaction, and other writers of the graph wait for it."""

ELSEWHERE = (
    "Use `recollect import`, several requests to POST /v1/graphs/{graph}/import, or a job: "
    "POST /v1/graphs/{graph}/imports"
)
"""Where to go with what is too much at once."""

REVISION_HEADER = "Recollect-Revision"
FACTS_HEADER = "Recollect-Facts-Left-Out"
"""What an answer over HTTP says beside the file: the revision that it shows, and how many facts it leaves out."""


PROBLEMS_TYPE = "application/x-ndjson"
"""What an import leaves to be fetched: each thing that was not imported, a line."""


class UnreadableLine(Exception):
    """A line that says nothing that can be kept. `reason` is for people and never holds the line's own text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Strategy(StrEnum):
    """What becomes of an entity or fact that an import brings and that is there already.

    Relations that are there stay; `replace` and `merge` bring their metadata.
    """

    SKIP = "skip"
    """It stays as it is."""
    REPLACE = "replace"
    """It becomes what the file says: what the file does not say of it is taken away."""
    MERGE = "merge"
    """It gains what it lacks: observations, tags, aliases, metadata, a type, a parent; the greater importance."""
    FAIL = "fail"
    """Nothing is imported."""


CYCLE = "it would stand below itself"
"""Why an entity is not put under a parent."""


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something that was not imported: where in the file it stands, and why.

    `of_part`: it is a part of an item, which is imported without it.
    """

    where: str
    reason: str
    of_part: bool = False


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of a part of a file, in entities, facts, relations and observations.

    `problems` were passed over.
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
        """How much said only what was known."""
        return self.entities_skipped + self.facts_skipped + self.relations_skipped

    def __add__(self, other: "ImportResult") -> "ImportResult":
        """Both parts together."""
        return ImportResult(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """Which entities and facts an export holds; relations are those among them. None and empty filter nothing.

    `tags`: any of them, whatever their case. `since` and `until`: when it last changed.
    """

    kind: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a graph that an export reads: all that `revision` and the time `at` show, and what that counts."""

    graph_id: UUID
    revision: int
    at: datetime
    entities: int
    facts: int
    placeholders: int
    relations: int
