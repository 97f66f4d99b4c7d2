"""Nodes in answers of `/v1` and as MCP resources: as items of a list, alone, and as versions."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from recollect.graph.entities.model import ListedObservations
from recollect.graph.lineages.model import Version
from recollect_http.requests.argument_types import OmittedObservations, omitted_observations

EXCERPT = 500
"""The maximum length of a node's text in a list, in characters."""


class NodeItemBody(Struct, frozen=True, kw_only=True):
    """A node as it is listed: an entity, or a fact where `name` is null.

    `text` is its summary, else the beginning of its content; `text_cut`: there is more. `stale`: its
    freshness has run out. `conflicts`: ids of other versions, between which nobody has chosen.
    """

    id: str
    name: str | None
    kind: str | None
    text: str
    text_cut: bool
    tags: list[str]
    importance: float | None
    status: str
    stale: bool
    version: int
    conflicts: list[str]
    created_at: datetime
    updated_at: datetime
    updated_by: str


class VersionBody(Struct, frozen=True, kw_only=True):
    """One version of a node. `version_id` is its own, `id` the node's. `superseded_by`: the version that ended it.

    `reason`: why it was changed, where that was stated. `based_on`: the version that its writer had read.
    """

    id: str
    version_id: str
    version: int
    name: str | None
    kind: str | None
    content: str | None
    summary: str | None
    tags: list[str]
    importance: float | None
    metadata: dict[str, Any]
    parent_id: str | None
    status: str
    source: str | None
    thread: str | None
    said_at: datetime | None
    freshness_at: datetime | None
    ttl_days: float | None
    expires_at: datetime | None
    revision: int
    written_at: datetime
    written_by: str
    reason: str | None
    based_on: int | None
    superseded_by: str | None
    deleted: bool
    conflicts: list[str]


class NodeBody(VersionBody, frozen=True, kw_only=True):
    """A node with its newest version, and what is said of an entity, oldest first.

    `created_at`: when its first version was written. `omitted_observations`: where all of them would not fit a reply,
    the newest are shown.
    """

    created_at: datetime
    stale: bool
    observations: list[str]
    omitted_observations: OmittedObservations | None


def node_item(node: Version) -> NodeItemBody:
    """A node as an item of a list."""
    text = node.summary or node.content or ""
    return NodeItemBody(
        id=str(node.node_id),
        name=node.name,
        kind=node.kind,
        text=text[:EXCERPT],
        text_cut=len(text) > EXCERPT or bool(node.summary and node.content),
        tags=list(node.tags),
        importance=node.importance,
        status=node.status,
        stale=node.is_stale(datetime.now(UTC)),
        version=node.version,
        conflicts=[str(version_id) for version_id in node.conflicts],
        created_at=node.began_at,
        updated_at=node.created_at,
        updated_by=node.created_by,
    )


def node_body(node: Version, listed: ListedObservations, skipped: int = 0) -> NodeBody:
    """A node alone, with all its fields and observations, of which the `skipped` newest were returned before."""
    return NodeBody(
        **_fields(node),
        created_at=node.began_at,
        stale=node.is_stale(datetime.now(UTC)),
        observations=list(listed.texts),
        omitted_observations=omitted_observations(
            listed.omitted, skipped + len(listed.texts), "GET /v1/graphs/{name}/nodes/{node} with observations_offset"
        ),
    )


def version_body(version: Version) -> VersionBody:
    """One version of a node."""
    return VersionBody(**_fields(version))


def _fields(version: Version) -> dict[str, Any]:
    names = (
        "version name kind content summary importance metadata status source thread said_at freshness_at ttl_days "
        "expires_at reason based_on deleted"
    )
    return {name: getattr(version, name) for name in names.split()} | {
        "id": str(version.node_id),
        "version_id": str(version.id),
        "tags": list(version.tags),
        "parent_id": None if version.parent_id is None else str(version.parent_id),
        "revision": version.added_revision,
        "written_at": version.created_at,
        "written_by": version.created_by,
        "superseded_by": None if version.superseded_by is None else str(version.superseded_by),
        "conflicts": [str(version_id) for version_id in version.conflicts],
    }
