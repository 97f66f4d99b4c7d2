"""`subscriptions/listen` by the official client: writes are reported to those who may read them."""

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
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.prompts_and_resources.subscriptions import MAX_URIS
from tests.conftest import NewTenant
from tests.support.gateway import LEGACY, MODERN, NewApiKey, RunningGateway, rpc_headers, serving
from tests.support.memories import Agent
from tests.support.timeouts import MAX_WAIT_SECONDS

WORK = "recollect://graphs/work"


@pytest.fixture(scope="module")
def hasty(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose streams look again soon, since the tests write past it and tell nobody."""
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


class TestReporting:
    @pytest.mark.proves("rules: listeners-hear-every-write")
    async def test_a_write_through_one_gateway_is_reported_by_another(
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

    @pytest.mark.proves("memgraph: subscriptions")
    @pytest.mark.parametrize(
        "uri", [f"{WORK}/nodes/Ann", f"{WORK}?kind=person", f"{WORK}?tag=TEAM", f"{WORK}?kind=person&tag=team"]
    )
    async def test_a_subscription_to_a_part_reports_changes_of_that_part(
        self, hasty: RunningGateway, key: str, work: Agent, uri: str
    ) -> None:
        async with subscribed(hasty, key, uri, f"{WORK}/nodes/Oslo") as subscription:
            await work.observe("Oslo", "Oslo is large")
            assert await heard(subscription) == ResourceUpdated(f"{WORK}/nodes/Oslo")
            await work.observe("Ann", "Ann plays chess")
            assert await heard(subscription) == ResourceUpdated(uri)

    @pytest.mark.proves("memgraph: subscriptions")
    async def test_creation_and_deletion_of_a_node_are_reported(
        self, hasty: RunningGateway, key: str, work: Agent
    ) -> None:
        async with subscribed(hasty, key, f"{WORK}/nodes/Ben%20Lee") as subscription:
            await work.create("Ben Lee")
            await heard(subscription)
            await work.delete("Ben Lee")
            await heard(subscription)

    @pytest.mark.proves("memgraph: subscriptions")
    async def test_new_graphs_are_reported_and_so_is_their_list(
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

    @pytest.mark.proves("memory-server: resource-updates")
    async def test_the_official_resource_is_the_default_graph(
        self, hasty: RunningGateway, key: str, db: Database, caller: Caller
    ) -> None:
        uri = "memory://knowledge-graph"
        async with subscribed(hasty, key, uri, path="/mcp/x/memory") as subscription:
            await Agent(db, caller, None).create("Ann")
            assert await heard(subscription) == ResourceUpdated(uri)
        async with subscribed(hasty, key, uri) as subscription:
            assert honored(subscription) == ()

    async def test_every_message_names_the_request_and_the_first_is_the_acknowledgement(
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


class TestPermissions:
    @pytest.mark.proves("rules: listeners-hear-every-write", "security: streams-of-one-tenant")
    async def test_an_unreachable_resource_looks_like_one_that_does_not_exist(
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

    @pytest.mark.proves("rules: listeners-hear-every-write", "security: streams-of-one-tenant")
    async def test_another_tenants_changes_are_not_reported(
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

    @pytest.mark.proves("security: revoked-streams")
    async def test_the_stream_of_a_revoked_key_ends_without_further_changes(
        self, hasty: RunningGateway, work: Agent, db: Database, caller: Caller, issue: NewApiKey
    ) -> None:
        key = await issue(caller)
        async with subscribed(hasty, key.secret, WORK) as subscription:
            async with db.transaction(caller) as tx:
                await identity.revoke_key(tx, key.key.id)
            await work.create("Ben")
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                assert [event async for event in subscription] == []

    @pytest.mark.proves("security: streams-of-one-tenant")
    async def test_a_caller_who_may_not_read_cannot_subscribe_to_resources(
        self, hasty: RunningGateway, work: Agent, caller: Caller, issue: NewApiKey
    ) -> None:
        writer = (await issue(caller, scopes=frozenset({"memory:write"}))).secret
        async with subscribed(hasty, writer, WORK, "recollect://graphs", resources_list_changed=True) as subscription:
            assert honored(subscription) == ()
            assert subscription.honored.resources_list_changed is None


class TestLimits:
    async def test_number_of_streams_of_a_key_is_limited(self, hasty: RunningGateway, key: str, work: Agent) -> None:
        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(opened(hasty, key, {})) for _ in range(3)]
            for stream in streams:
                await anext(stream)
            async with hasty.http(key, **modern_headers()) as http:
                response = await http.post("/mcp", json=listen_message({}))
            assert (response.status_code, response.json()["code"]) == (429, "too_many_streams")

    @pytest.mark.parametrize("uris", [[WORK + str(n) for n in range(MAX_URIS + 1)], ["x" * 9_000]])
    async def test_number_of_resources_of_a_stream_is_limited(
        self, hasty: RunningGateway, key: str, uris: list[str]
    ) -> None:
        async with hasty.client(key, "/mcp", revision=MODERN) as client:
            with pytest.raises(MCPError, match="One stream can have at most"):
                async with client.listen(resource_subscriptions=uris):
                    pass

    async def test_a_stopping_gateway_ends_its_streams_properly(
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

    async def test_older_revisions_do_not_have_the_method(self, hasty: RunningGateway, key: str, work: Agent) -> None:
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
    """A stream over HTTP, message by message."""

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
    """The part of the requested notifications that a stream acknowledges."""
    async with opened(gateway, key, asked, capabilities) as lines:
        return (await anext(lines))["params"]["notifications"]


async def test_a_change_of_the_offered_tools_is_reported(
    hasty: RunningGateway, db: Database, caller: Caller, issue: NewApiKey, owner: Any
) -> None:
    key = await issue(caller)
    async with subscribed(hasty, key.secret, tools_list_changed=True) as subscription:
        await owner.execute("UPDATE api_keys SET scopes = ARRAY['memory:read'] WHERE id = $1", key.key.id)
        assert await heard(subscription) == ToolsListChanged()
