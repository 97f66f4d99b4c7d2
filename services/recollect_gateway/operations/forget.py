"""Forget memories and nodes, by tool or by route."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.memory import revising
from recollect.memory.model import Forgotten, MemoryRef
from recollect_gateway.calls import Call
from recollect_http.requests.argument_types import MAX_ITEMS, Name, Reason


class ForgetBody(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The memories and nodes to forget.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    ids: Annotated[list[UUID], Meta(max_length=MAX_ITEMS)] = []
    names: Annotated[list[Name], Meta(max_length=MAX_ITEMS)] = []
    reason: Reason | None = None
    mode: Literal["outdated", "delete"] = "outdated"

    @property
    def targets(self) -> list[MemoryRef]:
        """The memories and nodes that are to be forgotten."""
        return [*(MemoryRef(id=id_) for id_ in self.ids), *(MemoryRef(name=name) for name in self.names)]


class ForgottenMemories(Struct, frozen=True, omit_defaults=True):
    """Result of `forget`: what was forgotten, and the ids and names that are unknown."""

    forgotten: list[str]
    not_found: list[str] = []


async def forget(call: Call, graph: str | None, body: ForgetBody) -> Forgotten:
    """Mark memories or nodes outdated, or delete them. Raises InvalidInput for neither ids nor names."""
    targets = body.targets
    if not targets:
        raise InvalidInput("Give ids or names", path="ids")
    async with call.writing(graph) as (tx, revision):
        return await revising.forget(tx, revision, targets, reason=body.reason, delete=body.mode == "delete")


def forgotten_body(forgotten: Forgotten) -> ForgottenMemories:
    """What was forgotten, and what is unknown, as tool and route answer it."""
    unknown = [str(target.name or target.id) for target in forgotten.unknown]
    return ForgottenMemories([str(id_) for id_ in forgotten.ids], unknown)
