"""Every page of the console: as another tenant's person, as each role, signed out, and without form token.

Routes come from the application: a new one fails here until it is in ROUTES.
"""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from recollect_gateway.app import create_app
from tests.support.attacks import NAMED, lasting
from tests.support.console import Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.people import browser
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]
PREFIX = "/app/{tenant:str}/{graph:str}"
READER, MEMBER, ADMIN = "reader", "member", "admin"
"""The lowest role that may do something."""

ROUTES = {
    "GET /commands": READER,
    "GET /commands/found": READER,
    "GET /care": READER,
    "GET /care/aside": READER,
    "GET /care/different": READER,
    "POST /care/different/{node:uuid}/{other_id:uuid}": MEMBER,
    "POST /care/propose/{node:uuid}/{other_id:uuid}": MEMBER,
    "GET /care/expiring": READER,
    "POST /care/keep/{node:uuid}": MEMBER,
    "GET /care/merge/{node:uuid}/{other_id:uuid}": MEMBER,
    "POST /care/merge/{node:uuid}/{other_id:uuid}": MEMBER,
    "GET /care/problems": READER,
    "GET /ask": READER,
    "GET /connect": READER,
    "POST /connect/keys": ADMIN,
    "GET /connect/keys/{key_id:uuid}/revoke": ADMIN,
    "POST /connect/keys/{key_id:uuid}/revoke": ADMIN,
    "POST /connect/keys/{key_id:uuid}/rotate": ADMIN,
    "GET /connect/keys/{key_id:uuid}/used": ADMIN,
    "POST /connect/grants/{grant_id:uuid}/revoke": ADMIN,
    "GET /graph": READER,
    "GET /graph/data": READER,
    "GET /erasure": ADMIN,
    "POST /erasure": ADMIN,
    "POST /erasure/check": ADMIN,
    "POST /erasure/receipt": ADMIN,
    "GET /jobs": READER,
    "GET /jobs/compact": MEMBER,
    "POST /jobs/start": MEMBER,
    "GET /jobs/{job_id:uuid}": READER,
    "POST /jobs/{job_id:uuid}/cancel": READER,
    "POST /jobs/{job_id:uuid}/delete": READER,
    "GET /jobs/{job_id:uuid}/output": READER,
    "GET /jobs/{job_id:uuid}/row": READER,
    "GET /memory": READER,
    "GET /memory/said": READER,
    "POST /memory/several": MEMBER,
    "POST /memory/several/try": MEMBER,
    "GET /node/{node:str}": READER,
    "GET /node/{node:str}/edit": READER,
    "POST /node/{node:str}/edit": MEMBER,
    "GET /node/{node:str}/forget": READER,
    "POST /node/{node:str}/forget": MEMBER,
    "GET /transfer": READER,
    "GET /transfer/export": READER,
    "POST /transfer/export": READER,
    "POST /transfer/file": MEMBER,
    "POST /transfer/import": MEMBER,
    "GET /audit": ADMIN,
    "GET /people": ADMIN,
    "POST /people/{person_id:uuid}/role": ADMIN,
    "GET /people/{person_id:uuid}/remove": ADMIN,
    "POST /people/{person_id:uuid}/remove": ADMIN,
    "GET /people/domains": ADMIN,
    "POST /people/domains": ADMIN,
    "POST /people/domains/{domain_id:uuid}/verify": ADMIN,
    "POST /people/domains/{domain_id:uuid}/role": ADMIN,
    "POST /people/domains/{domain_id:uuid}/delete": ADMIN,
    "GET /people/invitations": ADMIN,
    "POST /people/invitations": ADMIN,
    "POST /people/invitations/{invitation_id:uuid}/revoke": ADMIN,
    "GET /people/providers": ADMIN,
    "POST /people/providers": ADMIN,
    "GET /people/providers/{provider_id:uuid}": ADMIN,
    "POST /people/providers/{provider_id:uuid}": ADMIN,
    "POST /people/providers/{provider_id:uuid}/switch": ADMIN,
    "GET /people/providers/{provider_id:uuid}/delete": ADMIN,
    "POST /people/providers/{provider_id:uuid}/delete": ADMIN,
    "GET /settings": READER,
    "POST /settings": ADMIN,
    "GET /settings/delete": ADMIN,
    "POST /settings/delete": ADMIN,
    "POST /settings/delete/keep": ADMIN,
    "GET /settings/graphs": READER,
    "POST /settings/graphs": ADMIN,
    "GET /settings/graphs/new": ADMIN,
    "GET /settings/graphs/{graph_id:uuid}": ADMIN,
    "POST /settings/graphs/{graph_id:uuid}": ADMIN,
    "GET /settings/graphs/{graph_id:uuid}/delete": ADMIN,
    "POST /settings/graphs/{graph_id:uuid}/delete": ADMIN,
    "GET /settings/issuers": ADMIN,
    "POST /settings/issuers": ADMIN,
    "POST /settings/issuers/{issuer_id:uuid}/switch": ADMIN,
    "GET /settings/issuers/{issuer_id:uuid}/delete": ADMIN,
    "POST /settings/issuers/{issuer_id:uuid}/delete": ADMIN,
    "GET /usage": READER,
    "GET /webhooks": ADMIN,
    "POST /webhooks": ADMIN,
    "GET /webhooks/new": ADMIN,
    "GET /webhooks/{webhook_id:uuid}": ADMIN,
    "GET /webhooks/{webhook_id:uuid}/edit": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/edit": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/switch": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/secret": ADMIN,
    "GET /webhooks/{webhook_id:uuid}/delete": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/delete": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/test": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/replay": ADMIN,
    "POST /webhooks/{webhook_id:uuid}/deliveries/{delivery_id:uuid}/replay": ADMIN,
    "GET /timeline": READER,
    "GET /timeline/live": READER,
    "GET /timeline/slider": READER,
    "GET /timeline/take-back": MEMBER,
    "POST /timeline/take-back": MEMBER,
    "GET /timeline/{revision:int}": READER,
}
"""Every route of a tenant's pages, and the lowest role that may use it."""

OF_ORGANISATION = tuple(
    (name, {"graph_id": "name"}.get(name, name))
    for name in (
        "person_id",
        "invitation_id",
        "domain_id",
        "provider_id",
        "issuer_id",
        "webhook_id",
        "delivery_id",
        "graph_id",
    )
)
"""Names of objects of the organisation, each with its place in NAMED."""

LEVELS = (READER, MEMBER, ADMIN)
OF_NOBODY = {"GET /app", "GET /app/{tenant:str}", "GET /app/{tenant:str}/{graph:str}", "GET /app/components"}
"""Routes that show nothing of a tenant: they lead to a page that checks, or list the person's own organisations."""


@dataclass(frozen=True)
class Sides:
    """A stranger who owns another tenant, a person of each role in the victim's, and a browser without a session."""

    stranger: Visitor
    people: dict[str, Visitor]
    nobody: httpx2.AsyncClient
    names: dict[str, str]


@pytest.fixture
async def sides(
    gateway: RunningGateway, databases: Databases, settings: Settings, neighbours: Neighbours, owner: asyncpg.Connection
) -> AsyncIterator[Sides]:
    attacker, victim = neighbours
    async with AsyncExitStack() as stack:
        stranger = await stack.enter_async_context(visiting(gateway, databases, settings, attacker.caller))
        people = {
            role.value: await stack.enter_async_context(visiting(gateway, databases, settings, victim.caller, role))
            for role in Role
        }
        yield Sides(
            stranger,
            people,
            await stack.enter_async_context(browser(gateway)),
            await names_of_victim(owner, victim),
        )


async def names_of_victim(owner: asyncpg.Connection, victim: Neighbour) -> dict[str, str]:
    """Ids of the victim's objects, by the names that routes have for them."""
    tenant_id = victim.caller.tenant_id
    assert victim.key is not None
    return await _names_of_organisation(owner, victim) | {
        "tenant": victim.caller.tenant,
        "graph": "default",
        "revision": "1",
        "key_id": str(victim.key.key.id),
        "grant_id": str(uuid4()),
        "job_id": str(victim.done.id),
        "other_id": str(
            await owner.fetchval("SELECT max(id::text) FROM nodes WHERE tenant_id = $1 AND name IS NOT NULL", tenant_id)
        ),
        "node": str(await owner.fetchval("SELECT id FROM nodes WHERE tenant_id = $1 AND name IS NOT NULL", tenant_id)),
    }


async def _names_of_organisation(owner: asyncpg.Connection, victim: Neighbour) -> dict[str, str]:
    found = {
        name: await owner.fetchval(f"{NAMED[of]} LIMIT 1", victim.caller.tenant_id) for name, of in OF_ORGANISATION
    }
    assert None not in found.values(), found
    return {name: str(value) for name, value in found.items()}


def test_each_route_is_in_the_table(settings: Settings) -> None:
    there = {
        f"{method} {route.path}"
        for route in create_app(settings).routes
        if (route.path == "/app" or route.path.startswith("/app/")) and hasattr(route, "methods")
        for method in route.methods - {"OPTIONS", "HEAD"}
    }
    assert {route.replace(PREFIX, "") for route in there - OF_NOBODY} == set(ROUTES)


@pytest.mark.proves("security: foreign-handles")
@pytest.mark.proves("security: console-tenancy")
async def test_pages_of_another_tenant_look_like_those_of_none(
    sides: Sides, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """To the owner of another tenant. Nothing of the victim changes, whatever is sent with a valid form token."""
    before = lasting(await contents(owner, neighbours[1]))
    for route in ROUTES:
        told = [
            await send(sides.stranger.http, route, sides.names | {"tenant": tenant})
            for tenant in (sides.names["tenant"], "nobodys-name", "Not-A-Name")
        ]
        assert [answer.status_code for answer in told] == [404, 404, 404], route
        texts = {re.sub(r"form_token\" value=\"\w+", "", answer.text) for answer in told}
        assert len(texts) == 1, route
        assert sides.names["tenant"] not in texts.pop(), route
    assert lasting(await contents(owner, neighbours[1])) == before


async def test_objects_of_another_tenant_are_not_found_in_ones_own(
    sides: Sides, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    before = lasting(await contents(owner, neighbours[1]))
    own = {"tenant": sides.stranger.tenant}
    for route in ROUTES:
        if "_id" not in route and "{node" not in route:
            continue
        foreign = await send(sides.stranger.http, route, sides.names | own)
        unknown = {name: str(uuid4()) for name in sides.names if name not in ("tenant", "graph")}
        missing = await send(sides.stranger.http, route, sides.names | unknown | own)
        assert foreign.status_code == missing.status_code == 404, (route, foreign.text)
    assert lasting(await contents(owner, neighbours[1])) == before


@pytest.mark.proves("security: console-tenancy")
async def test_each_role_may_do_what_the_table_says(sides: Sides) -> None:
    for route, least in ROUTES.items():
        for role, person in sides.people.items():
            is_allowed = role == "owner" or LEVELS.index(role) >= LEVELS.index(least)
            if is_allowed and route.startswith("POST"):
                continue  # What it does is tested where it is.
            answer = await send(person.http, route, sides.names)
            assert (answer.status_code == 403) is not is_allowed, (route, role, answer.status_code)
            assert answer.status_code < 500, (route, role, answer.text)


@pytest.mark.proves("security: console-tenancy")
async def test_nobody_who_is_not_signed_in_sees_a_page(
    sides: Sides, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    before = lasting(await contents(owner, neighbours[1]))
    for route in ROUTES:
        answer = await send(sides.nobody, route, sides.names, token="")
        assert answer.status_code == 303, (route, answer.text)
        assert answer.headers["location"].startswith("/sign-in"), route
    assert lasting(await contents(owner, neighbours[1])) == before


@pytest.mark.proves("security: forms")
async def test_no_form_is_accepted_without_the_token_of_the_browser(
    sides: Sides, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """As a page of another site would send it with the cookies of an owner: none, or the token of somebody else."""
    before = lasting(await contents(owner, neighbours[1]))
    http = sides.people["owner"].http
    for route in ROUTES:
        if not route.startswith("POST"):
            continue
        for token in ("", "0" * 64, await token_of(sides.stranger.http)):
            assert (await send(http, route, sides.names, token=token)).status_code == 403, route
        as_text = await send(http, route, sides.names, token="", headers={"Content-Type": "text/plain"})
        assert as_text.status_code == 403, route
        foreign = await send(http, route, sides.names, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403, route
    assert lasting(await contents(owner, neighbours[1])) == before


@pytest.mark.proves("security: console-policy")
async def test_pages_cannot_be_framed_or_scripted(sides: Sides) -> None:
    """Nor can what refuses a form, or says that somebody is no member."""
    for route in ROUTES:
        answer = await send(sides.people["owner"].http, route, sides.names, token="")
        refused = await send(sides.stranger.http, route, sides.names)
        for each in (refused,) if is_stream(answer) else (answer, refused):
            policy = each.headers["content-security-policy"]
            is_file = "attachment" in each.headers.get("content-disposition", "")
            if each.headers["content-type"] == "application/json" and not is_file:
                assert policy == "default-src 'none'; frame-ancestors 'none'", route
                continue
            for part in ("frame-ancestors 'none'", "script-src 'self'", "style-src 'self'"):
                assert part in policy, (route, policy)
            assert "require-trusted-types" in policy or each is refused, (route, policy)


async def send(
    http: httpx2.AsyncClient,
    route: str,
    names: dict[str, str],
    *,
    token: str | None = None,
    headers: dict[str, str] | None = None,
) -> httpx2.Response:
    """A request to a route with these names, as a page of ours sends it; `token` None: with that of the browser."""
    method, _, path = route.partition(" ")
    address = re.sub(r"\{(\w+):\w+\}", r"{\1}", PREFIX + path).format(**names)
    if method == "GET":
        async with http.stream("GET", address) as answer:
            if not is_stream(answer):
                await answer.aread()
        return answer
    given = await token_of(http) if token is None else token
    sent = {"Origin": str(http.base_url).rstrip("/")} | (headers or {})
    return await http.post(address, data={"form_token": given}, headers=sent)


def is_stream(answer: httpx2.Response) -> bool:
    """Whether an answer stays open, so that it has no end to wait for."""
    return answer.headers.get("content-type", "").startswith("text/event-stream")


async def token_of(http: httpx2.AsyncClient) -> str:
    """The token for the forms of a browser."""
    return str(re.findall(r'name="form_token" value="(\w+)"', (await http.get("/account")).text)[0])
