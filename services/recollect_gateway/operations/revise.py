"""Revise a memory or a node, by tool or by route."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, Revised
from recollect_gateway.calls import Call
from recollect_http.requests.argument_types import VISIBLE, Importance, Name, Reason, Tag, Ttl


class ReviseBody(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The changes to one memory or node.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    id: Annotated[UUID, Meta(description="A memory's or node's id")] | None = None
    name: Annotated[Name, Meta(description="Or an entity's name")] | None = None
    text: Annotated[str, Meta(min_length=1, max_length=10_000), VISIBLE] | None = None
    tags: Annotated[list[Tag], Meta(max_length=50)] | None = None
    importance: Importance | None = None
    status: Literal["active", "outdated", "archived"] | None = None
    ttl_days: Ttl | None = None
    reason: Reason | None = None
    based_on_version: Annotated[int, Meta(ge=1, description="Version that you read")] | None = None


class RevisedMemory(Struct, frozen=True, omit_defaults=True):
    """Result of `revise`: the newest version. `status`: revised, unchanged (nothing was written) or conflict.

    `conflict`: the text that was not written, because there was a newer version; in a graph whose policy is `manual`,
    the texts of other versions, between which nobody has chosen.
    """

    id: str
    node: str
    status: str
    version: int
    text: str | None = None
    conflict: list[str] = []


async def revise(call: Call, graph: str | None, body: ReviseBody) -> Revised:
    """Change one memory or node. Raises InvalidInput for neither id nor name, and for both."""
    if (body.id is None) == (body.name is None):
        raise InvalidInput("Give either id or name", path="id")
    patch = MemoryPatch(
        text=body.text,
        tags=None if body.tags is None else tuple(body.tags),
        importance=body.importance,
        status=body.status,
        ttl_days=body.ttl_days,
        reason=body.reason,
        based_on=body.based_on_version,
    )
    async with call.writing(graph) as (tx, revision):
        return await revising.revise(tx, revision, MemoryRef(body.id, body.name), patch)


def revised_body(revised: Revised) -> RevisedMemory:
    """The outcome of a revision, as tool and route answer it."""
    is_conflict = revised.refused or revised.conflict
    status = "conflict" if is_conflict else "unchanged" if revised.unchanged else "revised"
    return RevisedMemory(
        str(revised.id), str(revised.node_id), status, revised.version, revised.text, list(revised.conflict)
    )
