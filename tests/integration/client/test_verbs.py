"""Relate, explore, revise and forget by the Python client, against the gateway; and with an OAuth token."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from recollect_client import AsyncRecollect, NotFoundError, Recollect, Triple, UnauthenticatedError
from tests.support.gateway import RunningGateway
from tests.support.oauth import HandClient, Visitor
from tests.support.people import browser, joined


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, caller: Caller, settings: Settings
) -> AsyncIterator[Visitor]:
    person: Person = await joined(databases, caller, Role.MEMBER, pepper=settings.pepper)
    async with browser(gateway) as http:
        yield Visitor(http, person.email)


@pytest.fixture
async def web(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http() as http:
        yield http


async def test_what_is_related_is_explored(client: Recollect, aclient: AsyncRecollect) -> None:
    in_ulm = Triple("Acme", "is in", "Ulm", metadata={"since": 1999})
    triples: list[Triple | tuple[str, str, str]] = [("Ada", "works at", "Acme"), in_ulm]
    assert [relation.status for relation in client.relate(triples)] == ["new", "new"]
    assert [relation.status for relation in await aclient.relate(triples)] == ["known", "known"]
    around = client.explore("Acme")
    assert {(each.subject, each.predicate, each.object) for each in around.relations} == {
        ("Ada", "works at", "Acme"),
        ("Acme", "is in", "Ulm"),
    }
    client.remember("drinks tea", about="Ada")
    [ada] = client.explore("Acme").nodes  # The others are known from triples alone.
    assert (ada.name, ada.text) == ("Ada", "drinks tea")
    assert (await aclient.explore("Ada", "Ulm", depth=3)).paths
    assert [each.object for each in client.explore("Acme", direction="outgoing").relations] == ["Ulm"]
    with pytest.raises(NotFoundError):
        client.explore("Grace")


async def test_a_memory_is_revised_once_by_those_who_read_it(client: Recollect, aclient: AsyncRecollect) -> None:
    [stored] = client.remember("The office is in Bonn")
    revised = client.revise(stored.id, text="The office is in Ulm", reason="moved", based_on_version=1)
    assert (revised.status, revised.version, revised.text) == ("revised", 2, "The office is in Ulm")
    late = await aclient.revise(stored.id, text="The office is in Kiel", based_on_version=1)
    assert (late.status, late.text) == ("conflict", "The office is in Ulm")
    assert (await aclient.revise(stored.id, tags=[])).status == "unchanged"
    assert [version.version for version in client.history(stored.node)] == [2, 1]


async def test_what_is_forgotten_is_not_recalled(client: Recollect, aclient: AsyncRecollect) -> None:
    bees, wasps = client.remember(["Bees make honey", "Wasps make no honey"])
    assert client.forget(bees.id, reason="so they say").forgotten == [bees.id]
    assert [found.id for found in client.recall("honey")] == [wasps.id]
    assert {found.id for found in client.recall("honey", include_outdated=True)} == {bees.id, wasps.id}
    gone = await aclient.forget([bees.id, wasps.id], names="Grace", mode="delete")
    assert (set(gone.forgotten), gone.not_found) == ({bees.id, wasps.id}, ["Grace"])
    assert not client.recall("honey", include_outdated=True)


async def test_an_oauth_token_is_as_good_as_a_key(
    gateway: RunningGateway, web: httpx2.AsyncClient, visitor: Visitor
) -> None:
    program = await HandClient.register(gateway, web)
    issued = await program.tokens(visitor, scope="memory:read memory:write")
    async with AsyncRecollect(gateway.url, access_token=issued["access_token"]) as client:
        await client.remember("drinks tea", about="Ada")
        assert [found.text for found in await client.recall("What does Ada drink?")] == ["drinks tea"]
        assert [node.name async for node in client.nodes()] == ["Ada"]
        every_key = client.keys()
        with pytest.raises(UnauthenticatedError, match="token"):
            await anext(every_key)
