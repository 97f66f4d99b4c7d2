"""Distilling keeps tenants apart: their conversations, their models and keys, and what was distilled."""

from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.distilling.language_models import service as language_models
from recollect.distilling.language_models.model import NewModel
from recollect.distilling.threads import service as threads
from recollect.errors import NotFound
from recollect.memory import remembering
from recollect.memory.model import NewMemory
from recollect.outbound.http_client import Outbound
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from tests.conftest import NewTenant
from tests.support.chat_server import asked, serving_model
from tests.support.jobs import employed
from tests.support.memories import Agent

THREAD, BERLIN = "support-1", "Ada lives in Berlin."


@pytest.fixture
async def callers(new_tenant: NewTenant) -> tuple[Caller, Caller]:
    return operator_caller(await new_tenant()), operator_caller(await new_tenant())


async def talked(db: Database, caller: Caller, text: str) -> None:
    async with Agent(db, caller).writing() as (tx, revision):
        await remembering.remember_turns(tx, revision, [NewMemory(text, thread=THREAD)])


async def facts_of(owner: asyncpg.Connection, caller: Caller) -> list[str]:
    rows = await owner.fetch(
        "SELECT content FROM nodes WHERE tenant_id = $1 AND source = 'distilled' AND removed_revision IS NULL",
        caller.tenant_id,
    )
    return [row["content"] for row in rows]


async def test_each_tenants_conversation_goes_to_its_own_model_with_its_own_key(
    db: Database, settings: Settings, owner: asyncpg.Connection, callers: tuple[Caller, Caller]
) -> None:
    """The threads have the same name in graphs of the same name."""
    settings = settings.model_copy(update={"outbound_networks": ["127.0.0.1/32"]})
    with serving_model() as one, serving_model() as other:
        async with employed(settings, db) as worker:
            for server, caller, text in zip((one, other), callers, ("mine of Berlin", "theirs"), strict=True):
                server.model = lambda turns: [(BERLIN, [turn["n"]]) for turn in turns if "Berlin" in turn["text"]]
                await talked(db, caller, text)
                async with db.transaction(caller) as tx:
                    await language_models.set_model(tx, NewModel(server.url, "own", f"key of {text}"), settings)
                    job = await threads.start(tx, "default", THREAD, settings)
            outbound = Outbound(settings)
            await job_loop.sweep(replace(worker, outbound=outbound))
            await outbound.close()
        requests = [*one.requests, *other.requests]
        seen = [[(r["key"], [turn["text"] for turn in asked(r)["turns"]])] for r in requests]
    assert seen == [[("Bearer key of mine of Berlin", ["mine of Berlin"])], [("Bearer key of theirs", ["theirs"])]]
    assert [await facts_of(owner, caller) for caller in callers] == [[BERLIN], []]
    mine, neighbour = callers
    async with db.transaction(neighbour) as tx:
        for revoked in ({"thread": THREAD}, {"job_id": job.id}, {"job_id": await _job_of(owner, mine)}):
            assert (await threads.revoke(tx, "default", settings, **revoked)).facts == 0
    assert await facts_of(owner, mine) == [BERLIN]


async def _job_of(owner: asyncpg.Connection, caller: Caller) -> UUID:
    job_id: UUID = await owner.fetchval("SELECT job_id FROM derived_facts WHERE tenant_id = $1", caller.tenant_id)
    return job_id


async def test_another_tenants_graph_does_not_exist(
    db: Database, settings: Settings, callers: tuple[Caller, Caller], owner: asyncpg.Connection
) -> None:
    settings = settings.model_copy(update={"distil_url": "http://127.0.0.1:1/v1"})
    mine, neighbour = callers
    await talked(db, mine, "I moved to Berlin")
    graph_id = await owner.fetchval("SELECT id FROM graphs WHERE tenant_id = $1", mine.tenant_id)
    async with db.transaction(neighbour) as tx:
        with pytest.raises(NotFound, match="There is no graph"):
            await threads.start(tx, str(graph_id), THREAD, settings)
        with pytest.raises(NotFound, match="There is no graph"):
            await threads.revoke(tx, str(graph_id), settings, thread=THREAD)
        with pytest.raises(NotFound, match="There is no conversation"):  # The neighbour has a graph of that name.
            await threads.start(tx, "default", THREAD, settings)


@pytest.mark.proves("security: model-keys")
async def test_a_key_is_void_in_another_tenants_row(
    db: Database, settings: Settings, callers: tuple[Caller, Caller], owner: asyncpg.Connection
) -> None:
    mine, neighbour = callers
    for caller in callers:
        async with db.transaction(caller) as tx:
            await language_models.set_model(tx, NewModel("https://example.com/v1", "own", "key"), settings)
    await owner.execute(
        "UPDATE language_models SET api_key = (SELECT api_key FROM language_models WHERE tenant_id = $1) "
        "WHERE tenant_id = $2",
        mine.tenant_id,
        neighbour.tenant_id,
    )
    async with db.transaction(mine) as tx:
        chosen = await language_models.choose_model(tx, settings)
        assert chosen is not None
        assert chosen.model.api_key == "key"
    async with db.transaction(neighbour) as tx:
        with pytest.raises(ValueError, match="not of this secret"):
            await language_models.choose_model(tx, settings)
