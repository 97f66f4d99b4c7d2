"""What one call may write: a bounded number of observations, for a bounded time, in which others wait for the graph."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.embedding import create_embedder
from recollect.errors import ErrorCode, Unavailable
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect_gateway.calls import MAX_LOCK_TIMEOUTS, Call, Services
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, MAX_OBSERVATIONS
from tests.support.gateway import NewApiKey, RunningGateway, answer, in_one_task, refused

PER_ENTITY = 1_000


@pytest.fixture
async def quick(db: Database, settings: Settings) -> AsyncIterator[Services]:
    """The services of a gateway in which a statement, and so a write, may take next to no time."""
    embedder = create_embedder(settings)
    hasty = settings.model_copy(update={"statement_timeout_seconds": 0.01})
    yield Services(Databases(db), QuestionEncoder(embedder), hasty)
    await embedder.close()


async def test_a_write_that_takes_too_long_is_taken_back_and_others_go_on(
    quick: Services, settings: Settings, db: Database, caller: Caller
) -> None:
    async def write_for_ever() -> None:
        async with Call(caller, quick, "slow").writing("default") as (tx, revision):
            await entities.create_entities(tx, revision, [NewEntity("Slow", "thing")])
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match="nothing was written") as refusal:
        await write_for_ever()
    assert refusal.value.code == ErrorCode.BUSY
    patient = Services(Databases(db), quick.encoder, settings)
    assert MAX_LOCK_TIMEOUTS * settings.statement_timeout_seconds > 1
    async with Call(caller, patient, "patient").writing("default") as (tx, revision):
        created = await entities.create_entities(tx, revision, [NewEntity("Slow", "thing")])
    assert len(created) == 1, "the other left nothing, and no lock"


async def test_a_write_without_a_bound_goes_on(quick: Services, caller: Caller) -> None:
    """A deletion of a graph, however much it has."""
    async with Call(caller, quick, "long").changing("default", unbounded=True) as tx:
        await asyncio.sleep(0.03)  # Longer than the bound of others.
        async with graphs.write_graph(tx, "default", "long") as revision:
            assert len(await entities.create_entities(tx, revision, [NewEntity("Long", "thing")])) == 1


@pytest.fixture
async def gateway_client(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> AsyncIterator[Any]:
    async with in_one_task(gateway.client((await issue(caller, kind="admin")).secret, "/mcp/x/memory")) as client:
        yield client


async def test_more_observations_than_a_call_takes_are_refused(gateway_client: Any, subtests: pytest.Subtests) -> None:
    lists = [[f"{n} {m}" for m in range(PER_ENTITY)] for n in range(MAX_OBSERVATIONS // PER_ENTITY)]
    assert len(lists) < MAX_BATCH
    for tool, argument, name, said in (
        ("create_entities", "entities", "name", "observations"),
        ("upsert_entities", "entities", "name", "observations"),
        ("add_observations", "observations", "entityName", "contents"),
        ("delete_observations", "deletions", "entityName", "observations"),
    ):
        with subtests.test(tool):
            kind = {"entityType": "thing"} if argument == "entities" else {}
            items = [{name: f"E {n}", said: texts, **kind} for n, texts in enumerate([*lists, ["one more"]])]
            code, text = await refused(gateway_client, tool, **{argument: items})
            assert code == "request_too_large"
            assert "20001 observations" in text
    assert (await answer(gateway_client, "read_graph"))["entities"] == []
