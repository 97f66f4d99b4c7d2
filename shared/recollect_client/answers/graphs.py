"""Answers about graphs and what they hold."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from recollect_client.answers.pages import Tagged


class Graph(Tagged, frozen=True, kw_only=True):
    """The configuration of a graph."""

    id: str
    name: str
    conflict_policy: str
    kind_whitelist: list[str] | None
    metadata: dict[str, Any]
    time_zone: str | None
    created_at: datetime
    created_by: str


class GraphDetail(Graph, frozen=True, kw_only=True):
    """The configuration of a graph, its newest revision, and exact counts of what it holds."""

    revision: int
    at: datetime
    entities: int
    facts: int
    observations: int
    relations: int


class NodeItem(Struct, frozen=True, kw_only=True):
    """A node in a list; long texts are cut (`text_cut`)."""

    id: str
    name: str | None
    kind: str | None
    text: str
    text_cut: bool
    status: str
    tags: list[str]
    importance: float | None
    version: int
    conflicts: list[str]
    stale: bool
    created_at: datetime
    updated_at: datetime
    updated_by: str


class NodeVersion(Struct, frozen=True, kw_only=True):
    """One version of a node."""

    id: str
    version: int
    version_id: str
    based_on: int | None
    revision: int
    name: str | None
    kind: str | None
    content: str | None
    summary: str | None
    status: str
    deleted: bool
    tags: list[str]
    importance: float | None
    metadata: dict[str, Any]
    source: str | None
    thread: str | None
    parent_id: str | None
    superseded_by: str | None
    conflicts: list[str]
    reason: str | None
    said_at: datetime | None
    ttl_days: float | None
    expires_at: datetime | None
    freshness_at: datetime | None
    written_at: datetime
    written_by: str


class OmittedObservations(Struct, frozen=True):
    """How many older observations an answer leaves out, and how to read the next of them."""

    count: int
    next: str


class Node(NodeVersion, frozen=True, kw_only=True):
    """The newest version of a node, with its observations."""

    observations: list[str]
    omitted_observations: OmittedObservations | None
    stale: bool
    created_at: datetime


class FoundNode(Struct, frozen=True, kw_only=True):
    """A node that was found."""

    node: NodeItem
    score: float
    similarity: float
    matches: list[str]


class RelationEnd(Struct, frozen=True, kw_only=True):
    """One end of a relation; `graph` where it lies in another one."""

    id: str
    name: str | None
    graph: str | None


class Relation(Struct, frozen=True, kw_only=True):
    """A relation of a node."""

    id: str
    type: str
    direction: str
    source: RelationEnd
    target: RelationEnd
    dangling: bool
    ordinal: int | None
    metadata: dict[str, Any]
    created_at: datetime
    created_by: str
    updated_at: datetime


class Dismissal(Struct, frozen=True, kw_only=True):
    """Two entities that somebody (`dismissed_by`) said are different, with the names that they have or had."""

    node_id: str
    other_id: str
    name: str | None
    other: str | None
    dismissed_by: str
    dismissed_at: datetime


class Change(Struct, frozen=True, kw_only=True):
    """One revision of a graph: what was done (`operation`), by whom (`actor`), on which `ids`; never a text.

    `ids_cut`: more ids were touched than are listed.
    """

    revision: int
    at: datetime
    actor: str
    operation: str
    counts: dict[str, int]
    ids: list[str]
    ids_cut: bool


class Receipt(Struct, frozen=True, kw_only=True):
    """The receipt of an erasure, or what it would erase (`dry_run`)."""

    dry_run: bool
    names: list[str]
    erased: dict[str, int]
    kept: dict[str, int]
    remains: dict[str, str]
    revision: int | None
