"""Scopes that a client requests: which are unknown and ignored, and which a person has to check by hand."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.gateway import RunningGateway
from tests.support.oauth import HandClient, Visitor, consent
from tests.support.people import browser, joined, sign_in

BOXES = re.compile(r'name="scope" value="([^"]*)"( checked)?>')


@pytest.fixture
async def admin(databases: Databases, caller: Caller, settings: Settings) -> Person:
    return await joined(databases, caller, Role.ADMIN, pepper=settings.pepper)


@pytest.fixture
async def http(gateway: RunningGateway, admin: Person) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(gateway) as client:
        await sign_in(client, admin.email)
        yield client


@pytest.fixture
async def client(gateway: RunningGateway, http: httpx2.AsyncClient) -> HandClient:
    return await HandClient.register(gateway, http)


async def granted_scopes(db: Database, caller: Caller) -> list[tuple[str, ...]]:
    async with db.transaction(caller) as tx:
        return [grant.scopes for grant in await grants.list_grants(tx)]


@pytest.mark.proves("security: administration-by-choice")
async def test_an_admin_who_only_clicks_allow_gives_no_administration(
    gateway: RunningGateway, http: httpx2.AsyncClient, client: HandClient, db: Database, caller: Caller
) -> None:
    """Not to a client that requests all scopes that discovery lists, nor to one that names every scope."""
    listed = (await http.get("/.well-known/oauth-authorization-server")).json()["scopes_supported"]
    assert "tenant:admin" not in listed
    for scope in (" ".join(listed), " ".join([*listed, "tenant:admin"])):
        page = (await http.get(client.request(scope=scope))).text
        assert (await consent(http, page, {"decision": "allow"})).status_code == 303
    scopes = await granted_scopes(db, caller)
    assert [set(given) for given in scopes] == [{"memory:read", "memory:write", "openid", "offline_access"}] * 2


@pytest.mark.proves("security: administration-by-choice")
async def test_administration_is_given_by_checking_its_box(
    http: httpx2.AsyncClient, client: HandClient, db: Database, caller: Caller
) -> None:
    page = (await http.get(client.request(scope="memory:read tenant:admin"))).text
    assert dict(BOXES.findall(page)) == {"memory:read": " checked", "tenant:admin": ""}
    chosen = {"decision": "allow", "scope": ["memory:read", "tenant:admin"]}
    assert (await consent(http, page, chosen)).status_code == 303
    assert await granted_scopes(db, caller) == [("memory:read", "tenant:admin")]


async def test_a_client_that_requests_administration_alone_gets_nothing_by_a_click(
    http: httpx2.AsyncClient, client: HandClient, db: Database, caller: Caller
) -> None:
    page = (await http.get(client.request(scope="tenant:admin"))).text
    refused = await consent(http, page, {"decision": "allow"})
    assert (refused.status_code, "Choose what it may do" in refused.text) == (400, True)
    assert dict(BOXES.findall(refused.text)) == {"tenant:admin": ""}
    assert await granted_scopes(db, caller) == []


async def test_unknown_scopes_are_ignored(
    gateway: RunningGateway,
    http: httpx2.AsyncClient,
    client: HandClient,
    admin: Person,
    db: Database,
    caller: Caller,
    subtests: pytest.Subtests,
) -> None:
    """By the authorization request, and by that for new tokens, in which clients repeat what they requested."""
    async with browser(gateway) as another:
        visitor = Visitor(another, admin.email)
        for requested, given in (
            ("memory:read profile email", "memory:read"),
            ("openid profile email", "openid"),
            ("claudeai memory:read memory:write", "memory:read memory:write"),
        ):
            with subtests.test(requested):
                issued = await client.tokens(visitor, scope=requested)
                assert issued["scope"] == given
                refreshed = await client.refresh(issued["refresh_token"], scope=requested)
                assert (refreshed.status_code, refreshed.json()["scope"]) == (200, given)
                more = await client.refresh(issued["refresh_token"], scope="tenant:admin")
                assert (more.status_code, more.json()["error"]) == (400, "invalid_scope")
