"""Nodes: lineages of versions, with a name (entities) or without (facts)."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from recollect.errors import ErrorCode, NotFound
from recollect.graph.json_values import same_json
from recollect.text.unicode_forms import APOSTROPHE, TYPED, with_apostrophes, written_forms

T = TypeVar("T")

ACTIVE = "active"
"""The status of a node that holds; the others (`outdated`, `archived`) hide it from recall."""


_LONGEST_KEY = 2048
"""The maximum size of a key in bytes: a longer one would not fit into an index."""


def name_key(name: str) -> str:
    """The key by which names are compared: in normal form NFC, with plain apostrophes, without white space at the ends.

    A name whose normal form is longer than 2,048 bytes is its own key. PostgreSQL's function `name_key` does the same.
    """
    key = unicodedata.normalize("NFC", APOSTROPHE.sub(TYPED, name.strip()))
    return key if len(key.encode(errors="surrogatepass")) <= _LONGEST_KEY else name


def stored_form(name: str, stored: Sequence[str]) -> str:
    """The stored name that a name means: the same one, or else another form of it, or else the name itself."""
    return name if name in stored else next((other for other in stored if name_key(other) == name_key(name)), name)


class EntityNotFound(NotFound):
    """No live entity has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found", code=ErrorCode.ENTITY_NOT_FOUND)
        self.name = name


@dataclass(frozen=True, slots=True)
class NewFact:
    """A memory that is not about an entity. `said_at` None means now. `said_offset`: as in NodeFields."""

    content: str
    kind: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    status: str = "active"
    said_offset: int | None = None


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A live node with the fields that a write needs. `name` is the one that is stored."""

    id: UUID
    name: str
    placeholder: bool
    status: str = ACTIVE


@dataclass(frozen=True, slots=True)
class NodeOutline:
    """The parts of a node that a drawing of the graph shows: its name, or else the beginning of its text."""

    id: UUID
    name: str | None
    kind: str | None
    excerpt: str | None
    status: str
    placeholder: bool

    @property
    def label(self) -> str:
        """The name, the beginning of the text, or else the id."""
        return self.name or self.excerpt or str(self.id)


@dataclass(frozen=True, slots=True)
class NodeFields:
    """The fields that a new version of a node may change. `reason`: why the node was last changed; None: not stated.

    `said_offset`: the minutes by which the clock of who said it was ahead of UTC; None: not known, or UTC.
    """

    name: str | None = None
    kind: str | None = None
    content: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    parent_id: UUID | None = None
    status: str = "active"
    source: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    freshness_at: datetime | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    last_dedup_at: datetime | None = None
    placeholder: bool = False
    reason: str | None = None
    said_offset: int | None = None

    def brought_back(self) -> "NodeFields":
        """The fields with the status `active`, without the reason of the former status."""
        return self if self.status == ACTIVE else replace(self, status=ACTIVE, reason=None)

    def is_same_as(self, other: "NodeFields") -> bool:
        """Whether versions with these fields and with `other` are the same, so that none need be written."""
        return replace(self, last_dedup_at=other.last_dedup_at) == other and same_json(self.metadata, other.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHead(NodeFields):
    """A live node as it is now: its newest version."""

    id: UUID
    graph_id: UUID
    version: int
    version_id: UUID
    created_at: datetime
    created_by: str
    updated_at: datetime

    @property
    def is_hidden(self) -> bool:
        """Whether it is outdated or archived: recall leaves it out, and other reads mark it."""
        return self.status != ACTIVE

    @property
    def fields(self) -> NodeFields:
        """The fields that a new version may change."""
        return NodeFields(**{name: getattr(self, name) for name in FIELD_NAMES})


FIELD_NAMES = tuple(field.name for field in dataclass_fields(NodeFields))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A new version of a node.

    `sibling_heads`: the earlier heads stay heads, so that the new version is their sibling (a recorded conflict).
    `based_on`: the number of the version that it changes; None is the one before. `actor`: its author; None is the
    caller.
    """

    head: NodeHead
    fields: NodeFields
    based_on: int | None = None
    sibling_heads: bool = False
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RestoredNode:
    """A lineage that gets back the `fields` that it had. `lived`: the fields that it has now; None if it was deleted.

    `siblings`: where the lineage had several heads, the ids of these versions without the highest, the lowest first;
    they become heads again. `based_on`: then the number of the version that the highest head was based on.
    """

    id: UUID
    fields: NodeFields
    began_at: datetime
    lived: NodeFields | None
    siblings: tuple[UUID, ...] = ()
    based_on: int | None = None


@dataclass(frozen=True, slots=True)
class RememberedFact:
    """A fact that a write added, or that the graph already had (`known`)."""

    id: UUID
    known: bool


def unique(values: Iterable[T]) -> list[T]:
    """Each value once, in order of first appearance."""
    return list(dict.fromkeys(values))


def unique_by(key: Callable[[T], Hashable], values: Iterable[T]) -> list[T]:
    """The first value of each key, in order of first appearance. A batch that names an item twice means it once."""
    firsts: dict[Hashable, T] = {}
    for value in values:
        firsts.setdefault(key(value), value)
    return list(firsts.values())


def occurrences(key: Callable[[T], Hashable], values: Iterable[T]) -> list[list[T]]:
    """The values in groups: the first value of each key, then the second of each, and so on.

    So a write of one group names each key once, and a key that a batch names twice is written twice, in order.
    """
    counts: Counter[Hashable] = Counter()
    groups: list[list[T]] = []
    for value in values:
        nth = counts[key(value)]
        counts[key(value)] += 1
        if nth == len(groups):
            groups.append([])
        groups[nth].append(value)
    return groups


def any_case(tags: Iterable[str]) -> list[str]:
    """The forms in which tags or kinds may be stored, for a filter that compares both sides by PostgreSQL's lower().

    Python and PostgreSQL do not agree on every lower-case letter (İ, a final Σ), and a tag may be stored in the form of
    either; it may also be stored in another normal form, or with another apostrophe.
    """
    spelled = (written for tag in tags for form in with_apostrophes(tag) for written in written_forms(form))
    forms = (
        form
        for tag in spelled
        for form in (tag, tag.lower(), tag.upper(), tag.upper().lower(), unicodedata.normalize("NFC", tag.upper()))
    )
    return unique(forms)
