"""Only listeners of one tenant that may see the same changes share a read of the log."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from mcp.client.subscriptions import Subscription
from mcp.shared.subscriptions import ResourceUpdated

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import MODERN, NewApiKey, RunningGateway, serving
from tests.support.memories import Agent
from tests.support.statements import sent_statements
from tests.support.streams import EventReader, listening
from tests.support.timeouts import MAX_WAIT_SECONDS

LISTENERS = 20
GRAPHS, DEFAULT_GRAPH = "recollect://graphs", "recollect://graphs/default"
LOG = "FROM changes"
"""A part of the statements that read the log of a graph."""


@pytest.fixture(scope="module")
def patient(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose streams read only after a write."""
    often = {
        "stream_check_seconds": 10 * MAX_WAIT_SECONDS,
        "streams_per_key": 10 * LISTENERS,
        "streams_per_tenant": 10 * LISTENERS,
        "streams": 100 * LISTENERS,
    }
    with serving(settings.model_copy(update=often)) as gateway:
        yield gateway


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller, None)


async def write(gateway: RunningGateway, key: str, text: str, graph: str = "default") -> None:
    """Write one revision."""
    async with gateway.http(key) as http:
        told = await http.post(f"/v1/graphs/{graph}/memories", json={"items": [{"text": text}]})
    assert told.status_code == 200, told.text


async def opened(stack: AsyncExitStack, gateway: RunningGateway, key: str, query: str = "") -> EventReader:
    return await stack.enter_async_context(listening(gateway, key, query=query))


async def subscribed(stack: AsyncExitStack, gateway: RunningGateway, key: str) -> Subscription:
    """A subscription to the list of graphs, and to the default graph."""
    client = await stack.enter_async_context(gateway.client(key, "/mcp", revision=MODERN))
    return await stack.enter_async_context(client.listen(resource_subscriptions=[GRAPHS, DEFAULT_GRAPH]))


async def told_until(subscription: Subscription, uri: str) -> list[str]:
    """The resources of the next events, until this one."""
    told: list[str] = []
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        while uri not in told:
            event = await anext(aiter(subscription))
            assert isinstance(event, ResourceUpdated)
            told.append(event.uri)
    return told


async def heard(streams: list[EventReader]) -> list[int]:
    return [int((await stream.named()).data["revision"]) for stream in streams]


async def settle(gateway: RunningGateway, key: str, streams: list[EventReader]) -> None:
    """Let each stream receive two writes: a new stream may still read earlier changes."""
    for text in ("one", "another"):
        await write(gateway, key, text)
        await heard(streams)


@pytest.mark.proves("security: shared-reads")
async def test_a_write_is_read_once_for_all_listeners(patient: RunningGateway, key: str, agent: Agent) -> None:
    await agent.create("begin")
    async with AsyncExitStack() as stack:
        streams = [await opened(stack, patient, key) for _ in range(LISTENERS)]
        await settle(patient, key, streams)
        with sent_statements() as sent:
            await write(patient, key, "what all hear of")
            assert await heard(streams) == [4] * LISTENERS
        reads = [statement for statement in sent if LOG in statement]
        assert 1 <= len(reads) <= 3, "each read the log for itself"
        asked = [statement for statement in sent if "find_api_key" in statement]
        assert len(asked) >= LISTENERS, "each credential is asked for anew"


async def test_subscriptions_share_a_read(patient: RunningGateway, key: str, agent: Agent) -> None:
    await agent.create("begin")
    async with AsyncExitStack() as stack:
        subscriptions = []
        for _ in range(LISTENERS):
            client = await stack.enter_async_context(patient.client(key, "/mcp", revision=MODERN))
            listen = client.listen(resource_subscriptions=["recollect://graphs/default"])
            subscriptions.append(await stack.enter_async_context(listen))
        for text in ("one", "another"):
            await write(patient, key, text)
            for subscription in subscriptions:
                await anext(aiter(subscription))
        with sent_statements() as sent:
            await write(patient, key, "what all hear of")
            for subscription in subscriptions:
                await anext(aiter(subscription))
        assert len(subscriptions) == LISTENERS
        looks = [statement for statement in sent if "FROM graph_heads" in statement]
        assert 1 <= len(looks) <= 6, "each looked for itself"


@pytest.mark.proves("security: shared-reads")
async def test_listeners_of_different_tenants_share_no_read(
    patient: RunningGateway, key: str, agent: Agent, db: Database, new_tenant: NewTenant, issue: NewApiKey
) -> None:
    """Two tenants with graphs of the same name and revision, each written at the same time."""
    stranger = operator_caller(await new_tenant())
    their_key = (await issue(stranger)).secret
    await agent.create("begin")
    await Agent(db, stranger, None).create("begin")
    async with AsyncExitStack() as stack:
        ours = [await opened(stack, patient, key) for _ in range(3)]
        theirs = [await opened(stack, patient, their_key) for _ in range(3)]
        for place in range(3):
            await write(patient, key, f"ours {place}")
            await write(patient, their_key, f"theirs {place}")
            told = [await stream.named() for stream in (*ours, *theirs)]
            pages = []
            for secret in (key, their_key):
                async with patient.http(secret) as http:
                    page = (await http.get(f"/v1/graphs/default/changes?after_revision={place + 1}")).json()
                    pages += page["items"] * 3
            assert [event.data for event in told] == pages
            assert told[0].data["ids"] != told[-1].data["ids"]


@pytest.mark.proves("security: shared-reads")
async def test_listeners_with_other_rights_receive_only_their_changes(
    patient: RunningGateway, key: str, agent: Agent, db: Database, caller: Caller, issue: NewApiKey
) -> None:
    """A key that is confined to the graph, one that is not, and a stream of persons only."""
    await agent.create("begin")
    async with db.transaction(caller) as tx:
        ids = await graphs.graph_ids(tx, ["default"])
    confined = (await issue(caller, graph_ids=(ids["default"],))).secret
    async with AsyncExitStack() as stack:
        free = [await opened(stack, patient, key) for _ in range(3)]
        bound = [await opened(stack, patient, confined) for _ in range(3)]
        await settle(patient, key, [*free, *bound])
        persons = await opened(stack, patient, key, "?kind=person")
        await write(patient, key, "of nobody")
        assert await heard([*free, *bound]) == [4] * 6
        await agent.create(NewEntity("Ann", "person"))
        await write(patient, key, "of nobody either")
        assert await heard([persons]) == [5]


@pytest.mark.proves("security: shared-reads")
async def test_a_confined_listener_to_the_list_of_graphs_does_not_hear_of_another_graph(
    patient: RunningGateway, key: str, agent: Agent, db: Database, caller: Caller, issue: NewApiKey
) -> None:
    """Both kinds of listener have seen the same list, since there is only the graph to which some are confined."""
    await agent.create("begin")
    async with db.transaction(caller) as tx:
        ids = await graphs.graph_ids(tx, ["default"])
    confined = (await issue(caller, graph_ids=(ids["default"],))).secret
    async with AsyncExitStack() as stack:
        bound, free = [[await subscribed(stack, patient, secret) for _ in range(3)] for secret in (confined, key)]
        await write(patient, key, "of another graph", graph="hidden")
        told: list[list[str]] = [[] for _ in free]
        for text in ("of the graph of all", "of it once more"):
            await write(patient, key, text)
            assert [await told_until(each, DEFAULT_GRAPH) for each in bound] == [[DEFAULT_GRAPH]] * 3
            told = [[*before, *await told_until(each, DEFAULT_GRAPH)] for before, each in zip(told, free, strict=True)]
        assert [each.count(GRAPHS) for each in told] == [1] * 3
