"""`subscriptions/listen`: one request whose answer stays open and reports which resources were written.

What a client asks for is authorised before it is acknowledged. The acknowledgement leaves out resources that the client
may not read, that do not exist, or that have no notifications, without saying which it is. A notification says "read it
again" and no more.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
    event_to_notification,
)
from mcp_types import (
    INVALID_PARAMS,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from msgspec import Struct

from recollect.caller import Caller
from recollect.errors import Forbidden
from recollect.notifications import service as notifications
from recollect.notifications.model import Watched, WatchState
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.errors import as_protocol_errors
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import (
    GRAPHS,
    KNOWLEDGE_GRAPH,
    MAX_LENGTH,
    parse_address,
)
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import may_read_graphs, offers_official_graph
from recollect_gateway.mcp_endpoint.request import Context, McpRequest, request_of
from recollect_gateway.mcp_endpoint.tasks.handlers import TaskHandlers
from recollect_gateway.mcp_endpoint.tasks.watching import FIELD, TaskStatus, WatchedTasks, watched_tasks
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.streaming.streams import PollResult

METHOD = "subscriptions/listen"

MAX_URIS = 100
"""The maximum number of resources that one stream listens to."""

GraphNames = frozenset[tuple[UUID, str]]


class _Message(Struct):
    method: Any = None


def listens(message: bytes) -> bool:
    """Whether a message asks for a stream."""
    try:
        return bool(msgspec.json.decode(message, type=_Message).method == METHOD)
    except (msgspec.MsgspecError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class News:
    """The result of one poll: the addresses of written resources, and the present state of everything watched."""

    updated: tuple[str, ...]
    seen: tuple[WatchState, ...]
    names: GraphNames


@dataclass(slots=True)
class Subscription:
    """The resources and lists that one stream listens to, with their state at the last poll.

    `catalogue`: every tool there is. `watched`: parts of graphs, by their address; `seen` has their states in the same
    order. `list_uris`: addresses of the list of graphs. `tools`, `lists`: whether the stream listens to the lists of
    tools and of resources. `tasks`: the tasks that it listens to.
    """

    services: Services
    request: McpRequest
    catalogue: Collection[ToolSpec]
    tasks: WatchedTasks
    watched: dict[str, Watched]
    list_uris: tuple[str, ...]
    lists: bool
    tools: bool
    seen: list[WatchState] = field(default_factory=list)
    names: GraphNames = frozenset()
    offered: frozenset[str] = frozenset()

    async def begin(self, caller: Caller) -> None:
        """Read the present state of everything, and drop what the caller may not use."""
        seen, self.names = await self._state(caller)
        allowed = [(uri, part, now) for (uri, part), now in zip(self.watched.items(), seen, strict=True) if now]
        self.watched = {uri: part for uri, part, _ in allowed}
        self.seen = [now for _, _, now in allowed]
        self.offered = self._offered(caller)

    @property
    def honored(self) -> SubscriptionFilter:
        """The subscription as the acknowledgement reports it: without anything that the caller may not read."""
        honored = SubscriptionFilter(
            tools_list_changed=self.tools or None,
            resources_list_changed=self.lists or None,
            resource_subscriptions=[*self.watched, *self.list_uris] or None,
        )
        tasks = [str(job_id) for job_id in self.tasks.graphs]
        return honored.model_copy(update={FIELD: tasks}) if tasks else honored

    @property
    def graphs(self) -> frozenset[UUID] | None:
        """The graphs that concern the stream; None: any, since it listens to their list or to one not made yet."""
        graph_ids = [*(now.graph_id for now in self.seen), *self.tasks.graphs.values()]
        if self.list_uris or self.lists or None in graph_ids:
            return None
        return frozenset(graph_id for graph_id in graph_ids if graph_id)

    async def poll(self, caller: Caller) -> PollResult[list[ServerEvent | TaskStatus]]:
        """Find the events to send. Raises Forbidden where the caller may no longer read graphs that are listened to."""
        if (self.watched or self._wants_names) and not may_read_graphs(caller):
            raise Forbidden("This credential may no longer read graphs.")
        stream = self.request.stream
        assert stream is not None, "only streams poll"
        key = (tuple(self.watched.items()), tuple(self.seen), self.names, self._wants_names)
        news = await stream.shared(key, partial(self._news, caller))
        events: list[ServerEvent | TaskStatus] = [ResourceUpdated(uri) for uri in news.updated]
        events += await self._task_news(caller)
        if news.names != self.names:
            events += [ResourceUpdated(uri) for uri in self.list_uris]
            events += [ResourcesListChanged()] if self.lists else []
        offered = self._offered(caller)
        if self.tools and offered != self.offered:
            events.append(ToolsListChanged())
        self.seen, self.names, self.offered = list(news.seen), news.names, offered
        return PollResult(events or None)

    async def _news(self, caller: Caller) -> News:
        async with self._reading(caller) as tx:
            found = await notifications.read_states(tx, list(self.watched.values()))
            seen = tuple(now or WatchState(None) for now in found)
            updated = [
                uri
                for (uri, part), before, now in zip(self.watched.items(), self.seen, seen, strict=True)
                if await notifications.has_changed(tx, part, before, now)
            ]
            names = await notifications.graph_names(tx) if self._wants_names else self.names
        return News(tuple(updated), seen, names)

    async def _task_news(self, caller: Caller) -> list[TaskStatus]:
        if not self.tasks.reported:
            return []
        async with self._reading(caller) as tx:
            found = await self.tasks.read_states(tx)
        return await self.tasks.news(caller, found)

    @property
    def _wants_names(self) -> bool:
        return bool(self.list_uris) or self.lists

    def _reading(self, caller: Caller) -> Any:
        return Call(caller, self.services, METHOD, read_only=True).transaction()

    async def _state(self, caller: Caller) -> tuple[list[WatchState | None], GraphNames]:
        async with self._reading(caller) as tx:
            names = await notifications.graph_names(tx) if self._wants_names else frozenset()
            await self.tasks.begin(tx)
            return await notifications.read_states(tx, list(self.watched.values())), names

    def _offered(self, caller: Caller) -> frozenset[str]:
        return frozenset(tool.name for tool in self.catalogue if self.request.selection.offers(tool, caller))


async def listen(
    services: Services,
    tasks: TaskHandlers,
    catalogue: Collection[ToolSpec],
    context: Context,
    params: SubscriptionsListenRequestParams,
) -> SubscriptionsListenResult:
    """Acknowledge the subscription, then notify of changes until the client leaves or the stream ends."""
    request, meta = request_of(context), {SUBSCRIPTION_ID_META_KEY: context.request_id}
    stream = request.stream
    with as_protocol_errors():
        caller = request.caller
        assert stream is not None, "the endpoint opens a stream for each such request"
        watched = watched_tasks(tasks, context, request, params.notifications)
        subscription = subscription_of(services, catalogue, request, params.notifications, watched)
        await subscription.begin(caller)
    stream.listener.graphs = subscription.graphs
    acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=subscription.honored, _meta=meta)
    await context.session.send_notification(
        SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=context.request_id
    )
    async for events in stream.follow(subscription.poll):
        for event in events or ():
            await context.session.send_notification(_notification(event, meta), related_request_id=context.request_id)
        stream.listener.graphs = subscription.graphs
    return SubscriptionsListenResult(_meta=meta)


def subscription_of(
    services: Services,
    catalogue: Collection[ToolSpec],
    request: McpRequest,
    requested: SubscriptionFilter,
    tasks: WatchedTasks,
) -> Subscription:
    """Make the subscription for a request, without what the caller may not read; raises MCPError for too many URIs."""
    uris = list(dict.fromkeys(requested.resource_subscriptions or ()))
    if len(uris) > MAX_URIS or any(len(uri) > MAX_LENGTH for uri in uris):
        raise MCPError(
            INVALID_PARAMS, f"One stream can have at most {MAX_URIS} URIs, each of at most {MAX_LENGTH} characters"
        )
    may_read = may_read_graphs(request.caller)
    return Subscription(
        services,
        request,
        catalogue,
        tasks,
        _watched(request, uris) if may_read else {},
        tuple(uri for uri in uris if uri == GRAPHS) if may_read else (),
        lists=bool(requested.resources_list_changed) and may_read,
        tools=bool(requested.tools_list_changed),
    )


def _notification(event: ServerEvent | TaskStatus, meta: dict[str, Any]) -> Any:
    if isinstance(event, TaskStatus):
        return event.model_copy(update={"params": event.params | {"_meta": meta}})
    return event_to_notification(event, meta)


def _watched(request: McpRequest, uris: Sequence[str]) -> dict[str, Watched]:
    watched = {}
    for uri in uris:
        if uri == KNOWLEDGE_GRAPH and offers_official_graph(request):
            watched[uri] = Watched(request.caller.default_graph)
        elif (address := parse_address(uri)) is not None and address.graph is not None:
            watched[uri] = Watched(address.graph, address.node, address.kinds, address.tags)
    return watched
