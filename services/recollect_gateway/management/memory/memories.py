"""/v1/graphs/{name}/memories, /conversations, /recall and other verbs: the agent's tools, without MCP."""

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import JSONBody

from recollect.caller import Scope
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.management.guards import CallerRequest, mirrors
from recollect_gateway.operations.conversations import (
    ConversationBody,
    RememberedConversation,
    conversation_body,
    remember_conversation,
)
from recollect_gateway.operations.explore import ExploreBody, ExploredGraph, explore, explored_body
from recollect_gateway.operations.forget import ForgetBody, ForgottenMemories, forget, forgotten_body
from recollect_gateway.operations.recall import RecallBody, RecalledMemories, recall, recalled_body
from recollect_gateway.operations.relate import RelateBody, RelatedTriples, relate
from recollect_gateway.operations.remember import RememberBody, RememberedMemories, remember, remembered_body
from recollect_gateway.operations.revise import ReviseBody, RevisedMemory, revise, revised_body
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import GraphInPath
from recollect_http.openapi.routes import post
from recollect_http.problems import RESPONSES


class MemoryController(Controller):
    """Remember, recall, relate, revise, forget and explore."""

    path = "/graphs/{name:str}"
    tags = ("memories",)

    @post(
        "/memories",
        response_description="What became of each item, in their order.",
        summary="Store memories",
        opt=mirrors("remember", tokens=True),
        status_code=200,
        before_request=valid_body(RememberBody, stored=True),
    )
    async def store_memories(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        data: JSONBody[RememberBody],
    ) -> RememberedMemories:
        """Store facts in one revision. Known facts are not duplicated, so the request may be repeated.

        A graph that does not exist is created.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return remembered_body(await remember(Call(request.user, services, "remember"), name, data))

    @post(
        "/conversations",
        response_description="What became of each turn, in their order.",
        summary="Store a conversation",
        opt=mirrors("remember", tokens=True),
        status_code=200,
        before_request=valid_body(ConversationBody, stored=True),
    )
    async def store_conversation(
        self,
        request: CallerRequest,
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
        stored = await remember_conversation(
            call, name, data, tags=data.tags, source=data.source, time_zone=data.time_zone
        )
        return conversation_body(stored)

    @post(
        "/recall",
        responses=RESPONSES,
        response_description="The memories that were found, best first.",
        summary="Recall memories",
        opt=mirrors("recall", tokens=True),
        status_code=200,
        before_request=valid_body(RecallBody),
    )
    async def recall_memories(
        self, request: CallerRequest, services: NamedDependency[Services], name: GraphInPath, data: JSONBody[RecallBody]
    ) -> RecalledMemories:
        """Find memories by words and by meaning. For a graph that does not exist, nothing is found."""
        request.user.require(Scope.MEMORY_READ)
        call = Call(request.user, services, "recall", read_only=True)
        recalled = await read_by_replica(call, lambda call: recall(call, name, data))
        return recalled_body(recalled, explain=data.explain)

    @post(
        "/relate",
        response_description="What became of each triple, in their order.",
        summary="Relate entities",
        opt=mirrors("relate", tokens=True),
        status_code=200,
        before_request=valid_body(RelateBody, stored=True),
    )
    async def relate_entities(
        self, request: CallerRequest, services: NamedDependency[Services], name: GraphInPath, data: JSONBody[RelateBody]
    ) -> RelatedTriples:
        """Store how entities relate, as triples, in one revision. The request may be repeated.

        The entities need not exist yet. Metadata replaces that of a known triple.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return await relate(Call(request.user, services, "relate"), name, data)

    @post(
        "/revise",
        response_description="The newest version of the memory or node, and whether the change was made.",
        summary="Correct a memory or node",
        opt=mirrors("revise", tokens=True),
        status_code=200,
        before_request=valid_body(ReviseBody, stored=True),
    )
    async def revise_memory(
        self, request: CallerRequest, services: NamedDependency[Services], name: GraphInPath, data: JSONBody[ReviseBody]
    ) -> RevisedMemory:
        """Change one memory or node. Omitted fields stay, and the earlier version stays in history.

        With `based_on_version`, nothing is written if there is a newer version: `status` is `conflict` then. In a graph
        whose conflict policy is `manual`, it is written next to the newer version.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return revised_body(await revise(Call(request.user, services, "revise"), name, data))

    @post(
        "/forget",
        response_description="What was forgotten, and what does not exist.",
        summary="Forget memories or nodes",
        opt=mirrors("forget", tokens=True),
        status_code=200,
        before_request=valid_body(ForgetBody, removes=True),
    )
    async def forget_memories(
        self, request: CallerRequest, services: NamedDependency[Services], name: GraphInPath, data: JSONBody[ForgetBody]
    ) -> ForgottenMemories:
        """Mark memories or nodes as outdated, or delete them, in one revision. Both stay in history.

        Outdated memories are recalled on request only. Use `POST /v1/graphs/{name}/erase` for what must not stay.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return forgotten_body(await forget(Call(request.user, services, "forget"), name, data))

    @post(
        "/explore",
        responses=RESPONSES,
        response_description="The nodes that were reached, nearest first, and the relations among them.",
        summary="Explore what surrounds a node",
        opt=mirrors("explore", tokens=True),
        status_code=200,
        before_request=valid_body(ExploreBody),
    )
    async def explore_graph(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        data: JSONBody[ExploreBody],
    ) -> ExploredGraph:
        """Show what surrounds a node, or the paths between two nodes."""
        request.user.require(Scope.MEMORY_READ)
        call = Call(request.user, services, "explore", read_only=True)
        found = await read_by_replica(call, lambda call: explore(call, name, data))
        return explored_body(found, found.nodes, found.cut)
