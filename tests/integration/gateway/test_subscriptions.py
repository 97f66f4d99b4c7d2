"""`subscriptions/listen` by the official client: what was written is heard, by whom may read it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

import pytest
from mcp.client.subscriptions import ListenNotSupportedError, Subscription
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.platform.db import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.subscriptions import MAX_URIS
from tests.conftest import NewTenant
from tests.support.gateway import LEGACY, MODERN, NewApiKey, RunningGateway, rpc_headers, serving
from tests.support.memories import Agent
from tests.support.timeouts import MAX_WAIT_SECONDS

WORK = "recollect://graphs/work"


@pytest.fixture(scope="module")
def hasty(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose streams look again soon: the tests write past it, and tell nobody."""
    often = {"stream_check_seconds": 0.1, "streams_per_key": 3}
    with serving(settings.model_copy(update=often)) as gateway:
        yield gateway


@pytest.fixture
async def work(db: Database, caller: Caller) -> Agent:
    agent = Agent(db, caller, "work")
    await agent.create(NewEntity("Ann", "person", tags=("team",)), NewEntity("Oslo", "city"))
    return agent


@asynccontextmanager
async def subscribed(
    gateway: RunningGateway, key: str, *uris: str, path: str = "/mcp", **lists: bool
) -> AsyncIterator[Subscription]:
    async with (
        gateway.client(key, path, revision=MODERN) as client,
        client.listen(resource_subscriptions=uris, **lists) as subscription,
    ):
        yield subscription


async def heard(subscription: Subscription) -> Any:
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        return await anext(aiter(subscription))


def honored(subscription: Subscription) -> Sequence[str]:
    return subscription.honored.resource_subscriptions or ()


class TestTelling:
    async def test_a_write_through_one_gateway_is_heard_at_another(
        self, gateway: RunningGateway, settings: Settings, key: str, work: Agent
    ) -> None:
        with serving(settings) as other:
            async with (
                subscribed(other, key, WORK) as subscription,
                gateway.client(key, "/mcp", revision=MODERN) as client,
            ):
                assert honored(subscription) == [WORK]
                told = await client.call_tool("remember", {"items": [{"text": "Ann plays chess"}], "graph": "work"})
                assert not told.is_error
                assert await heard(subscription) == ResourceUpdated(WORK)

    @pytest.mark.parametrize(
        "uri", [f"{WORK}/nodes/Ann", f"{WORK}?kind=person", f"{WORK}?tag=TEAM", f"{WORK}?kind=person&tag=team"]
    )
    async def test_who_listens_to_a_part_hears_of_that_part(
        self, hasty: RunningGateway, key: str, work: Agent, uri: str
    ) -> None:
        async with subscribed(hasty, key, uri, f"{WORK}/nodes/Oslo") as subscription:
            await work.observe("Oslo", "Oslo is large")
            assert await heard(subscription) == ResourceUpdated(f"{WORK}/nodes/Oslo")
            await work.observe("Ann", "Ann plays chess")
            assert await heard(subscription) == ResourceUpdated(uri)

    async def test_a_node_is_heard_of_when_it_comes_and_when_it_goes(
        self, hasty: RunningGateway, key: str, work: Agent
    ) -> None:
        async with subscribed(hasty, key, f"{WORK}/nodes/Ben%20Lee") as subscription:
            await work.create("Ben Lee")
            await heard(subscription)
            await work.delete("Ben Lee")
            await heard(subscription)

    async def test_graphs_that_come_are_heard_of_and_so_is_their_list(
        self, hasty: RunningGateway, key: str, db: Database, caller: Caller
    ) -> None:
        uris = ("recollect://graphs", "recollect://graphs/later")
        async with subscribed(hasty, key, *uris, resources_list_changed=True) as subscription:
            assert set(honored(subscription)) == set(uris)
            async with db.transaction(caller) as tx:
                await graphs.create_graph(tx, NewGraph("later"))
            events = [await heard(subscription) for _ in range(3)]
            assert set(events) == {ResourcesListChanged(), *map(ResourceUpdated, uris)}
            async with db.transaction(caller) as tx:
                await graphs.configure_graph(tx, "later", GraphPatch(name="renamed"), "test")
            assert await heard(subscription) is not None

    async def test_the_official_resource_is_the_default_graph(
        self, hasty: RunningGateway, key: str, db: Database, caller: Caller
    ) -> None:
        uri = "memory://knowledge-graph"
        async with subscribed(hasty, key, uri, path="/mcp/x/memory") as subscription:
            await Agent(db, caller, None).create("Ann")
            assert await heard(subscription) == ResourceUpdated(uri)
        async with subscribed(hasty, key, uri) as subscription:
            assert honored(subscription) == ()

    async def test_every_frame_names_the_request_and_the_acknowledgement_is_the_first(
        self, hasty: RunningGateway, key: str, work: Agent
    ) -> None:
        asked = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": [WORK, "other://x"]}
        async with opened(hasty, key, asked) as lines:
            first = await anext(lines)
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": [WORK]}
            await work.create("Ben")
            second = await anext(lines)
            assert (second["method"], second["params"]["uri"]) == ("notifications/resources/updated", WORK)
            for frame in (first, second):
                assert frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "me"


class TestWhoMayListen:
    async def test_what_a_key_does_not_reach_looks_like_what_is_not_there(
        self, hasty: RunningGateway, work: Agent, db: Database, caller: Caller, issue: NewApiKey
    ) -> None:
        await Agent(db, caller, "hidden").create("Ann")
        async with db.transaction(caller) as tx:
            ids = await graphs.graph_ids(tx, ["work", "hidden"])
        confined = (await issue(caller, graph_ids=(ids["work"],))).secret
        hidden = ["hidden", "nowhere", str(ids["hidden"])]
        uris = [*(f"recollect://graphs/{name}" for name in hidden), "recollect://graphs/hidden/nodes/Ann"]
        async with subscribed(hasty, confined, WORK, *uris) as subscription:
            assert honored(subscription) == [WORK]
            await Agent(db, caller, "hidden").create("Ben")
            await work.create("Ben")
            assert await heard(subscription) == ResourceUpdated(WORK)

    async def test_nobody_hears_of_another_tenant(
        self, hasty: RunningGateway, key: str, work: Agent, db: Database, new_tenant: NewTenant
    ) -> None:
        stranger = operator_caller(await new_tenant())
        theirs = Agent(db, stranger, "work")
        await theirs.create("Zoe")
        async with db.transaction(stranger) as tx:
            other = (await graphs.get_graph(tx, "work")).id
        uris = (WORK, f"recollect://graphs/{other}", f"{WORK}/nodes/Zoe", "recollect://graphs")
        async with subscribed(hasty, key, *uris) as subscription:
            await theirs.observe("Zoe", "Zoe left")
            await Agent(db, stranger, "more").create("Zoe")
            await work.create("Ben")
            assert await heard(subscription) == ResourceUpdated(WORK)
            await work.create("Cleo")
            assert await heard(subscription) == ResourceUpdated(WORK)

    async def test_the_stream_of_a_revoked_key_ends_and_tells_nothing_more(
        self, hasty: RunningGateway, work: Agent, db: Database, caller: Caller, issue: NewApiKey
    ) -> None:
        key = await issue(caller)
        async with subscribed(hasty, key.secret, WORK) as subscription:
            async with db.transaction(caller) as tx:
                await identity.revoke_key(tx, key.key.id)
            await work.create("Ben")
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                assert [event async for event in subscription] == []

    async def test_who_may_not_read_listens_to_no_resource(
        self, hasty: RunningGateway, work: Agent, caller: Caller, issue: NewApiKey
    ) -> None:
        writer = (await issue(caller, scopes=frozenset({"memory:write"}))).secret
        async with subscribed(hasty, writer, WORK, "recollect://graphs", resources_list_changed=True) as subscription:
            assert honored(subscription) == ()
            assert subscription.honored.resources_list_changed is None


class TestBounds:
    async def test_a_key_has_so_many_streams(self, hasty: RunningGateway, key: str, work: Agent) -> None:
        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(opened(hasty, key, {})) for _ in range(3)]
            for stream in streams:
                await anext(stream)
            async with hasty.http(key, **modern_headers()) as http:
                response = await http.post("/mcp", json=listen_message({}))
            assert (response.status_code, response.json()["code"]) == (429, "too_many_streams")

    @pytest.mark.parametrize("uris", [[WORK + str(n) for n in range(MAX_URIS + 1)], ["x" * 9_000]])
    async def test_a_stream_takes_so_many_resources(self, hasty: RunningGateway, key: str, uris: list[str]) -> None:
        async with hasty.client(key, "/mcp", revision=MODERN) as client:
            with pytest.raises(MCPError, match="One stream can have at most"):
                async with client.listen(resource_subscriptions=uris):
                    pass

    async def test_a_gateway_that_stops_ends_its_streams_in_order(
        self, settings: Settings, key: str, work: Agent
    ) -> None:
        with ExitStack() as running:
            gateway = running.enter_context(serving(settings))
            async with opened(gateway, key, {"resourceSubscriptions": [WORK]}) as lines:
                await anext(lines)
                stopping = asyncio.create_task(asyncio.to_thread(running.close))
                last = [line async for line in lines][-1]
                assert (last["id"], last["result"]["resultType"]) == ("me", "complete")
            await stopping

    async def test_earlier_revisions_have_no_such_request_and_say_so(
        self, hasty: RunningGateway, key: str, work: Agent
    ) -> None:
        async with hasty.client(key, "/mcp", revision=LEGACY) as client:
            assert client.server_capabilities.resources is not None
            assert not client.server_capabilities.resources.subscribe
            with pytest.raises(ListenNotSupportedError):
                async with client.listen(resource_subscriptions=[WORK]):
                    pass
        async with hasty.http(key, **rpc_headers(LEGACY)) as http:
            for method in ("subscriptions/listen", "resources/subscribe"):
                params = {"notifications": {}, "uri": WORK}
                answer = await hasty.post(http, method, params, path="/mcp")
                assert answer["error"]["code"] == -32601, answer


def modern_headers() -> dict[str, str]:
    return rpc_headers(MODERN) | {"Mcp-Method": "subscriptions/listen"}


def listen_message(notifications: dict[str, Any], capabilities: Any = None) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = {"_meta": meta, "notifications": notifications}
    return {"jsonrpc": "2.0", "id": "me", "method": "subscriptions/listen", "params": params}


@asynccontextmanager
async def opened(
    gateway: RunningGateway, key: str, notifications: dict[str, Any], capabilities: Any = None
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """A stream as it comes by HTTP, message by message."""

    async def messages(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
        async for line in lines:
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))

    async with (
        gateway.http(key, **modern_headers()) as http,
        http.stream("POST", "/mcp", json=listen_message(notifications, capabilities)) as response,
    ):
        assert response.headers["content-type"] == "text/event-stream", await response.aread()
        yield messages(response.aiter_lines())


async def acknowledged(gateway: RunningGateway, key: str, asked: dict[str, Any], capabilities: Any) -> Any:
    """What of all that is asked for a stream tells of."""
    async with opened(gateway, key, asked, capabilities) as lines:
        return (await anext(lines))["params"]["notifications"]


async def test_tools_that_a_key_is_offered_no_more_are_told(
    hasty: RunningGateway, db: Database, caller: Caller, issue: NewApiKey, owner: Any
) -> None:
    key = await issue(caller)
    async with subscribed(hasty, key.secret, tools_list_changed=True) as subscription:
        await owner.execute("UPDATE api_keys SET scopes = ARRAY['memory:read'] WHERE id = $1", key.key.id)
        assert await heard(subscription) == ToolsListChanged()
