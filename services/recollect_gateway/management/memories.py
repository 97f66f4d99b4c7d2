"""/v1/graphs/{name}/memories, /conversations and /recall: what `remember` and `recall` do, without MCP."""

from typing import Any

from litestar import Controller, Request, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody

from recollect.caller import Caller, Scope
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.errors import ACT_RESPONSES, RESPONSES
from recollect_gateway.guards import mirrors
from recollect_gateway.management.fields import GraphInPath
from recollect_gateway.operations import memories
from recollect_gateway.operations.conversations import (
    ConversationBody,
    RememberedConversation,
    conversation_body,
    remember_conversation,
)
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
        response_description="What became of each item, in their order.",
        summary="Store memories",
        opt=mirrors("remember"),
        status_code=200,
        before_request=valid_body(RememberBody, stored=True),
    )
    async def store_memories(
        self,
        request: AnyRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        data: JSONBody[RememberBody],
    ) -> RememberedMemories:
        """Store facts in one revision. Known facts are not duplicated, so the request may be repeated.

        A graph that does not exist is created.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return remembered_body(await memories.remember(Call(request.user, services, "remember"), name, data))

    @post(
        "/conversations",
        responses=ACT_RESPONSES,
        response_description="What became of each turn, in their order.",
        summary="Store a conversation",
        opt=mirrors("remember"),
        status_code=200,
        before_request=valid_body(ConversationBody, stored=True),
    )
    async def store_conversation(
        self,
        request: AnyRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        data: JSONBody[ConversationBody],
    ) -> RememberedConversation:
        """Store the turns of a conversation in one revision: messages as model APIs have them, or plain text.

        Known turns are not duplicated: send the conversation again when it has grown. A graph that does not exist is
        created.
        """
        request.user.require(Scope.MEMORY_WRITE)
        call = Call(request.user, services, "remember")
        kept = await remember_conversation(
            call, name, data, tags=data.tags, source=data.source, time_zone=data.time_zone
        )
        return conversation_body(kept)

    @post(
        "/recall",
        responses=RESPONSES,
        response_description="The memories that were found, best first.",
        summary="Recall memories",
        opt=mirrors("recall"),
        status_code=200,
        before_request=valid_body(RecallBody),
    )
    async def recall_memories(
        self, request: AnyRequest, services: NamedDependency[Services], name: GraphInPath, data: JSONBody[RecallBody]
    ) -> RecalledMemories:
        """Find memories by words and by meaning. For a graph that does not exist, nothing is found."""
        request.user.require(Scope.MEMORY_READ)
        call = Call(request.user, services, "recall", read_only=True)
        recalled = await read_by_replica(call, lambda call: memories.recall(call, name, data))
        return recalled_body(recalled, explain=data.explain)
