"""A version of a node, and the outcome of a put of one."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound, RecollectError
from recollect.graph.graphs.model import Graph
from recollect.graph.nodes.model import FIELD_NAMES, NodeFields, NodeHead, Rewrite, name_key


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable version of a node. `id` is its own; `node_id` is the lineage's.

    `superseded_by` is the version that ended it; `conflicts` are the other heads of its lineage, where sibling versions
    were recorded under the `manual` policy and none has superseded them yet. `reason`: why it was last changed, if
    stated.
    """

    tenant_id: UUID
    id: UUID
    graph_id: UUID
    node_id: UUID
    version: int
    name: str | None
    kind: str | None
    content: str | None
    summary: str | None
    tags: tuple[str, ...]
    importance: float | None
    metadata: dict[str, Any]
    parent_id: UUID | None
    status: str
    source: str | None
    thread: str | None
    said_at: datetime | None
    freshness_at: datetime | None
    ttl_days: float | None
    expires_at: datetime | None
    last_dedup_at: datetime | None
    placeholder: bool
    deleted: bool
    based_on: int | None
    superseded_by: UUID | None
    added_revision: int
    superseded_revision: int | None
    created_at: datetime
    created_by: str
    began_at: datetime
    conflicts: tuple[UUID, ...]
    reason: str | None
    said_offset: int | None

    @property
    def is_current(self) -> bool:
        """Whether no later version took its place."""
        return self.superseded_by is None and not self.deleted

    def is_stale(self, now: datetime) -> bool:
        """Whether its freshness has run out."""
        return self.freshness_at is not None and self.freshness_at <= now


@dataclass(frozen=True, slots=True)
class Draft:
    """A version to write: of a new lineage, or of `node_id`. `based_on`: the version that its writer had read.

    `content_only`: an existing node gets kind, content, summary, tags, metadata and freshness from `fields`, and
    thread and time where these are set; the rest (its name, parent, importance, …) stays as it is. An outdated or
    archived node is active again.
    """

    fields: NodeFields
    node_id: UUID | None = None
    based_on: int | None = None
    actor: str | None = None
    content_only: bool = False

    def fields_on(self, head: NodeHead) -> NodeFields:
        """The fields of the version that replaces `head`."""
        if not self.content_only:
            return self.fields
        origin = {name: getattr(self.fields, name) for name in ORIGIN if getattr(self.fields, name) is not None}
        return replace(head.fields.brought_back(), **{name: getattr(self.fields, name) for name in CONTENT}, **origin)


CONTENT = ("kind", "content", "summary", "tags", "metadata", "freshness_at")
"""Fields of a node that every put of a lineage sets, all of them."""

ORIGIN = ("thread", "said_at", "said_offset")
"""Fields of a node that a put of a lineage may set; a later put without them leaves them as they are."""


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """The outcome of a draft: a version of a node, and whether it is a sibling of heads that it was not based on.

    `unchanged`: a head is the same as the draft already, and nothing was written; `version` is the newest one.
    """

    node_id: UUID
    version: int
    created: bool
    conflict: bool
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class VersionFilter:
    """Which nodes are listed: those with any of the kinds and any of the tags. Empty tuples filter nothing.

    `prefix`: of the names of entities, in any case; facts have no names. `after`: the lineage and the number of the
    last version of the page before. `author`: the subject that wrote the version.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    limit: int = 100
    offset: int = 0
    status: str | None = None
    prefix: str = ""
    after: tuple[UUID, int] | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class KindUse:
    """A kind ('' for none), how many nodes and observations have it, and a few short texts of them, newest first.

    `observations`: those that have a kind of their own, beside that of their entity.
    """

    kind: str
    count: int
    observations: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TagUse:
    """A tag as it is mostly spelt, and how many nodes and observations have it in any spelling."""

    tag: str
    count: int
    observations: int


@dataclass(frozen=True, slots=True)
class TagPrefixUse:
    """The prefix of tags `prefix:value`, how often nodes and observations use it, and the values used most."""

    prefix: str
    count: int
    observations: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaDescription:
    """The vocabulary in use in a graph, each part most used first and bounded; `more`: at least one part was cut."""

    node_count: int
    kinds: tuple[KindUse, ...]
    tag_prefixes: tuple[TagPrefixUse, ...]
    tags: tuple[TagUse, ...]
    more: bool


def plan_puts(
    graph: Graph, drafts: Sequence[Draft], heads: Mapping[UUID, NodeHead], names: Mapping[str, UUID]
) -> list[Draft | Rewrite | RecollectError]:
    """The step for each draft: a new lineage (the draft itself), a new version, or an error. One draft per lineage.

    `heads` are the live nodes that the drafts refer to, `names` the live nodes that have the drafts' names; a
    placeholder's name is free.
    """
    owners: dict[str, UUID | None] = dict(names)
    created: set[str] = set()
    steps: list[Draft | Rewrite | RecollectError] = []
    for draft in drafts:
        try:
            _require_kind(graph, draft, heads)
            _require_name(draft, owners, created)
            steps.append(draft if draft.node_id is None else _rewrite(graph, draft, heads))
        except RecollectError as error:
            steps.append(error)
            continue
        if draft.fields.name is not None:
            owners[draft.fields.name] = draft.node_id
            if draft.node_id is None:
                created.add(name_key(draft.fields.name))
    return steps


def needless(rewrite: Rewrite, heads: Sequence[Version]) -> bool:
    """Whether a version would repeat a head of its lineage, as when a call is sent again.

    `heads` are all heads of the lineage, the newest first. A version that settles a conflict is never needless; one
    that would be a sibling of the heads is, where it equals one of them.
    """
    if len(heads) > 1 and not rewrite.sibling_heads:
        return False
    return any(
        rewrite.fields.is_same_as(fields_of(head)) and rewrite.actor in (None, head.created_by) for head in heads
    )


def fields_of(version: Version) -> NodeFields:
    """The fields of a version."""
    return NodeFields(**{name: getattr(version, name) for name in FIELD_NAMES})


def not_found(node_id: UUID) -> NotFound:
    """The error for a node that does not exist, or is another graph's or another tenant's."""
    return NotFound(f"There is no node {node_id}.", code=ErrorCode.NODE_NOT_FOUND)


def _require_kind(graph: Graph, draft: Draft, heads: Mapping[UUID, NodeHead]) -> None:
    """Raise InvalidInput for a new kind that the whitelist leaves out; a node may keep the kind that it has."""
    head = heads.get(draft.node_id) if draft.node_id else None
    if head is None or head.fields.kind != draft.fields.kind:
        graph.require_kind(draft.fields.kind, "kind")


def _require_name(draft: Draft, owners: Mapping[str, UUID | None], created: Container[str]) -> None:
    """Raise Conflict for the name of another node, or of one that the call creates (`created`: its keys)."""
    name = draft.fields.name
    if name is None:
        return
    is_new = draft.node_id is None
    if (name in owners and (is_new or owners[name] != draft.node_id)) or (is_new and name_key(name) in created):
        raise Conflict(f"There is already a node named {name!r}.", code=ErrorCode.NAME_TAKEN, path="name")


def _rewrite(graph: Graph, draft: Draft, heads: Mapping[UUID, NodeHead]) -> Rewrite:
    assert draft.node_id is not None
    head = heads.get(draft.node_id)
    if head is None or head.fields.placeholder:
        raise not_found(draft.node_id)
    if draft.based_on is not None and not 1 <= draft.based_on <= head.version:
        raise InvalidInput(f"The node has versions 1 to {head.version}", path="based_on_version")
    sibling_heads = graph.conflict_policy == "manual" and draft.based_on not in (None, head.version)
    return Rewrite(head, draft.fields_on(head), draft.based_on, sibling_heads, draft.actor)
