"""An access token of one tenant under /v1 reads and writes nothing of another, whatever the request names."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.contract.test_route_tokens import TAKEN
from tests.support.attacks import NAMED, Attack, anonymous
from tests.support.gateway import RunningGateway
from tests.support.oauth import HandClient, Visitor
from tests.support.people import browser, joined
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]
SECRET = "platypus"


@pytest.fixture
async def http(
    gateway: RunningGateway, databases: Databases, settings: Settings, neighbours: Neighbours
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with a token of the first tenant: every graph, every toolset."""
    stranger, victim = neighbours
    await victim.observe("Ada", f"kept a {SECRET}")
    person = await joined(databases, stranger.caller, Role.OWNER, pepper=settings.pepper)
    async with browser(gateway) as web, gateway.http() as plain:
        client = await HandClient.register(gateway, plain)
        token = (await client.tokens(Visitor(web, person.email)))["access_token"]
    async with gateway.http(token) as client_http:
        yield client_http


@pytest.mark.proves("security: foreign-tokens", "security: foreign-ids")
async def test_ids_of_another_tenant_look_like_unknown_ones(
    http: httpx2.AsyncClient, neighbours: Neighbours, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    _, victim = neighbours
    graph = str(await owner.fetchval(NAMED["name"], victim.caller.tenant_id))
    node = str(await owner.fetchval(NAMED["node"], victim.caller.tenant_id))
    before = await contents(owner, victim)
    for name in sorted(TAKEN):
        method, path = name.lower().split(" ", 1)[0], name.split(" ", 1)[1]
        with subtests.test(name):
            told: set[str] = set()
            for graph_id, node_id in ((graph, node), (str(uuid4()), str(uuid4()))):
                attack = Attack(method, path, {"name": graph_id, "node": node_id})
                answer = await attack.send(http)
                assert SECRET not in answer.text
                told.add(anonymous(answer, attack))
            assert len(told) == 1, told
    assert await contents(owner, victim) == before


@pytest.mark.proves("security: foreign-tokens")
async def test_the_name_of_another_tenant_changes_nothing(http: httpx2.AsyncClient, neighbours: Neighbours) -> None:
    """The header is for browsers: the tenant of a token is its own."""
    _, victim = neighbours
    asked: dict[str, Any] = {"query": f"Who kept a {SECRET}?"}
    named = {"X-Recollect-Tenant": victim.caller.tenant}
    answers = [await http.post("/v1/graphs/default/recall", json=asked, headers=headers) for headers in ({}, named)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert all(SECRET not in answer.text for answer in answers)
    assert answers[0].json()["memories"] == answers[1].json()["memories"]
