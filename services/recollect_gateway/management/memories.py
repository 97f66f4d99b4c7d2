"""/v1/graphs/{name}/memories and /recall: what the tools `remember` and `recall` do, without MCP."""

from typing import Any

from litestar import Controller, Request, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from recollect.caller import Caller, Scope
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.errors import ACT_RESPONSES, RESPONSES
from recollect_gateway.guards import mirrors
from recollect_gateway.operations import memories
from recollect_gateway.operations.memories import (
    RecallBody,
    RecalledMemories,
    RememberBody,
    RememberedMemories,
    recalled_body,
    remembered_body,
)
from recollect_gateway.validation import valid_body

AnyRequest = Request[Caller, Any, State]


class MemoryController(Controller):
    """Remember and recall."""

    path = "/graphs/{name:str}"
    tags = ("memories",)

    @post(
        "/memories",
        responses=ACT_RESPONSES,
        summary="Remember",
        opt=mirrors("remember"),
        status_code=200,
        before_request=valid_body(RememberBody),
    )
    async def remember(
        self,
        request: AnyRequest,
        services: NamedDependency[Services],
        name: FromPath[str],
        data: JSONBody[RememberBody],
    ) -> RememberedMemories:
        """Keep facts in one revision; what is known already is not doubled, so that it may be repeated.

        The graph is made where it is not there.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return remembered_body(await memories.remember(Call(request.user, services, "remember"), name, data))

    @post(
        "/recall",
        responses=RESPONSES,
        summary="Recall",
        opt=mirrors("recall"),
        status_code=200,
        before_request=valid_body(RecallBody),
    )
    async def recall(
        self, request: AnyRequest, services: NamedDependency[Services], name: FromPath[str], data: JSONBody[RecallBody]
    ) -> RecalledMemories:
        """Find what was remembered, by words and by meaning. A graph that is not there holds nothing."""
        request.user.require(Scope.MEMORY_READ)
        call = Call(request.user, services, "recall", read_only=True)
        recalled = await read_by_replica(call, lambda call: memories.recall(call, name, data))
        return recalled_body(recalled, explain=data.explain)
