"""What is stored holds up nobody who opens a page of the console, either (test_event_loop_of_stored_content.py)."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.slow.loads.test_event_loop_of_stored_content import ALICE, CONTENTS
from tests.support.console import Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.loop_bounds import within_bounds
from tests.support.memories import Agent
from tests.support.watched_gateway import watched_gateway
from tests.tenancy.test_console import ROUTES

pytestmark = pytest.mark.usefixtures("leaves_nothing")

LARGEST: dict[str, tuple[str, ...]] = {
    "GET /ask": ("q=what+did+Alice+say",),
    "GET /commands/found": ("q=Alice", "q=a"),
    "GET /graph": ("node=ALICE&depth=3&size=2000",),
    "GET /graph/data": ("node=ALICE&depth=3&size=2000", "size=2000"),
    "GET /memory": ("prefix=Ali", "tag=x"),
    "GET /memory/said": ("about=Alice", "order=oldest"),
    "GET /node/{node:str}": tuple(f"part={part}" for part in ("relations", "versions", "close")),
    "GET /care/problems": ("check=yes",),
}
"""Pages with the arguments that ask for most; each is opened without any, too."""

VERSIONS = 51
"""More than one page of them."""

NEVER_ENDS = "GET /timeline/live"


@pytest.fixture(scope="module")
def alone() -> None:
    """Unlike other tests of loads, these share the graphs that they build."""


@pytest.fixture(scope="module")
async def watched(settings: Settings) -> AsyncIterator[RunningGateway]:
    """A gateway whose event loop is watched."""
    async with watched_gateway(settings) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def visitor(
    watched: RunningGateway, databases: Databases, settings: Settings, tenant_caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(watched, databases, settings, tenant_caller) as visitor:
        yield visitor


@pytest.mark.parametrize("content", CONTENTS)
async def test_pages_keep_the_bounds(
    visitor: Visitor, db: Database, tenant_caller: Caller, content: str, subtests: pytest.Subtests
) -> None:
    agent = Agent(db, tenant_caller, content)
    await CONTENTS[content](agent)
    ids = await _ids(agent)
    for route in ROUTES:
        method, _, path = route.partition(" ")
        if method != "GET" or route == NEVER_ENDS or "_id:" in path.replace("other_id:", ""):
            continue
        filled = path.replace("{node:uuid}", ids[0]).replace("{node:str}", ids[0]).replace("{other_id:uuid}", ids[1])
        for query in ("", *LARGEST.get(route, ())):
            address = f"{filled.replace('{revision:int}', '2')}?{query.replace('ALICE', ids[0])}"
            with subtests.test(address):
                async with within_bounds(visitor.http):
                    answer = await visitor.http.get(visitor.path(address.removeprefix("/"), graph=content), timeout=120)
                assert answer.status_code < 500, answer.text[-500:]


async def _ids(agent: Agent) -> tuple[str, str]:
    """The ids of Alice and of another entity."""
    assert agent.graph is not None
    await agent.create("Other")
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await naming.require_entities(tx, await graphs.get_graph(tx, agent.graph), [ALICE, "Other"])
    return str(found[ALICE].id), str(found["Other"].id)


async def test_versions_of_long_texts_keep_the_bounds(
    visitor: Visitor, db: Database, tenant_caller: Caller, subtests: pytest.Subtests
) -> None:
    """A page of versions, each of a thousand words that are all others than before, or of which every second is."""
    agent = Agent(db, tenant_caller, "revised")
    await agent.create(NewEntity("Ada", "person"))
    for number in range(VERSIONS):
        words = (f"w{n}" if number % 2 and n % 2 else f"v{number}x{n}" for n in range(1_000))
        async with agent.writing() as (tx, revision):
            head = (await nodes.require_entity_heads(tx, revision.graph, ["Ada"]))["Ada"]
            await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, content=" ".join(words)))])
    for part in ("versions", "observations"):
        with subtests.test(part):
            async with within_bounds(visitor.http):
                answer = await visitor.http.get(visitor.path(f"node/Ada?part={part}", graph="revised"), timeout=120)
            assert answer.status_code == 200
