"""Revise or forget memories and nodes."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, Revised, Target
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.listed import listed, told_forms
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.agent.lines import under_its_line
from recollect_gateway.shapes import MAX_ITEMS, VISIBLE, Importance, Name, Reason, Tag, Ttl


class Revise(Arguments, frozen=True, rename=None):
    """Arguments of `revise`."""

    id: Annotated[UUID, Meta(description="A memory's or node's id")] | None = None
    name: Annotated[Name, Meta(description="Or an entity's name")] | None = None
    text: Annotated[str, Meta(min_length=1, max_length=10_000), VISIBLE] | None = None
    tags: Annotated[list[Tag], Meta(max_length=50)] | None = None
    importance: Importance | None = None
    status: Literal["active", "outdated", "archived"] | None = None
    ttl_days: Ttl | None = None
    reason: Reason | None = None
    based_on_version: Annotated[int, Meta(ge=1, description="Version that you read")] | None = None


class Forget(Arguments, frozen=True, rename=None):
    """Arguments of `forget`."""

    ids: Annotated[list[UUID], Meta(max_length=MAX_ITEMS)] = []
    names: Annotated[list[Name], Meta(max_length=MAX_ITEMS)] = []
    reason: Reason | None = None
    mode: Literal["outdated", "delete"] = "outdated"


class RevisedMemory(Struct, frozen=True, omit_defaults=True):
    """Result of `revise`: the newest version. `status`: revised, unchanged (nothing was written) or conflict.

    `conflict`: the text that was not written, because there was a newer version; in a graph whose policy is `manual`,
    the texts of other versions that stand beside this one, unsettled.
    """

    id: str
    node: str
    status: str
    version: int
    text: str | None = None
    conflict: list[str] = []


class ForgottenMemories(Struct, frozen=True, omit_defaults=True):
    """Result of `forget`: what was there and is let go, and the ids and names that are unknown."""

    forgotten: list[str]
    not_found: list[str] = []


async def revise(call: Call, arguments: Revise) -> Reply:
    """Change one memory or node; in a conflict, answer both texts."""
    if (arguments.id is None) == (arguments.name is None):
        raise InvalidInput("Give either id or name", path="id")
    patch = MemoryPatch(
        text=arguments.text,
        tags=None if arguments.tags is None else tuple(arguments.tags),
        importance=arguments.importance,
        status=arguments.status,
        ttl_days=arguments.ttl_days,
        reason=arguments.reason,
        based_on=arguments.based_on_version,
    )
    async with call.writing(arguments.graph) as (tx, revision):
        revised = await revising.revise(tx, revision, Target(arguments.id, arguments.name), patch)
    is_conflict = revised.refused or revised.conflict
    status = "conflict" if is_conflict else "unchanged" if revised.unchanged else "revised"
    result = RevisedMemory(
        str(revised.id), str(revised.node_id), status, revised.version, revised.text, list(revised.conflict)
    )
    return Reply(result, _revised_text(revised, status))


def _revised_text(revised: Revised, status: str) -> str:
    label = "not written" if revised.refused else "beside"
    others = "".join(f"\n  {label}: {under_its_line(text)}" for text in revised.conflict)
    newest = f" (version {revised.version} is the newest; revise that)" if revised.refused else ""
    return f"{status} {revised.id}{newest}: {under_its_line(revised.text or '')}{others}"


async def forget(call: Call, arguments: Forget) -> Reply:
    """Mark memories or nodes outdated, or delete them."""
    if not arguments.ids and not arguments.names:
        raise InvalidInput("Give ids or names", path="ids")
    targets = [*(Target(id=id_) for id_ in arguments.ids), *(Target(name=name) for name in arguments.names)]
    should_delete = arguments.mode == "delete"
    async with call.writing(arguments.graph) as (tx, revision):
        forgotten = await revising.forget(tx, revision, targets, reason=arguments.reason, delete=should_delete)
    unknown = [str(target.name or target.id) for target in forgotten.unknown]
    text = f"forgotten: {len(targets) - len(unknown)} of {len(targets)}"
    result = ForgottenMemories([str(id_) for id_ in forgotten.ids], unknown)
    text = f"{text}; not found: {listed(unknown)}" if unknown else text
    return Reply(result, f"{text}{told_forms(forgotten.forms)}")
