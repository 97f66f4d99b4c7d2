"""/v1/graphs/{name}/memories and /recall: what the tools `remember` and `recall` do, without MCP."""

from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Controller, Request, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from recollect.caller import Caller
from recollect.errors import InvalidInput
from recollect_gateway.errors import RESPONSES
from recollect_gateway.guards import mirrors, read_json
from recollect_gateway.mcp_endpoint.catalogue import TOOLS
from recollect_gateway.mcp_endpoint.schema import parse
from recollect_gateway.mcp_endpoint.tool import Call, Services
from recollect_gateway.mcp_endpoint.toolsets.agent.memories import (
    Asked,
    Recall,
    RecalledMemories,
    Remember,
    RememberedMemories,
    Told,
    recall_memories,
    remember_items,
)

AnyRequest = Request[Caller, Any, State]


def sound(type_: type[Struct]) -> Callable[[Request[Any, Any, Any]], Awaitable[None]]:
    """Refuse a body that is not of this type, with the path of what is wrong: the framework tells it in a sentence."""

    async def check(request: Request[Any, Any, Any]) -> None:
        body = await read_json(request)
        if not isinstance(body, dict):
            raise InvalidInput("The body is not a JSON object")
        parse(type_, body)

    return check


class MemoryController(Controller):
    """Remember and recall."""

    path = "/graphs/{name:str}"
    tags = ("memories",)

    @post(
        "/memories",
        responses=RESPONSES,
        summary="Remember",
        opt=mirrors("remember"),
        status_code=200,
        before_request=sound(Told),
    )
    async def remember(
        self, request: AnyRequest, services: NamedDependency[Services], name: FromPath[str], data: JSONBody[Told]
    ) -> RememberedMemories:
        """Keep facts in one revision; what is known already is not doubled, so that it may be repeated.

        The graph is made where it is not there.
        """
        reply = await remember_items(_call(request, services, "remember"), Remember(graph=name, items=data.items))
        assert isinstance(reply.structured, RememberedMemories)
        return reply.structured

    @post(
        "/recall",
        responses=RESPONSES,
        summary="Recall",
        opt=mirrors("recall"),
        status_code=200,
        before_request=sound(Asked),
    )
    async def recall(
        self, request: AnyRequest, services: NamedDependency[Services], name: FromPath[str], data: JSONBody[Asked]
    ) -> RecalledMemories:
        """Find what was remembered, by words and by meaning. A graph that is not there holds nothing."""
        arguments = Recall(graph=name, **{field: getattr(data, field) for field in data.__struct_fields__})
        reply = await recall_memories(_call(request, services, "recall"), arguments)
        assert isinstance(reply.structured, RecalledMemories)
        return reply.structured


def _call(request: AnyRequest, services: Services, tool: str) -> Call:
    """The call of a tool that the request stands for; raises Forbidden."""
    request.user.require(TOOLS[tool].scope)
    return Call(request.user, services, TOOLS[tool])
