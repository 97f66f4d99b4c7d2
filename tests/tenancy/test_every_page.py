"""Every page for people and every OAuth endpoint, with ids and secrets of a person of another tenant."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.passkeys import store as passkeys
from recollect.accounts.passkeys.model import MAX_PASSKEYS
from recollect.accounts.people import resets
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.app import create_app
from tests.support.attacks import lasting
from tests.support.gateway import RunningGateway
from tests.support.oauth import HandClient, Visitor, granted
from tests.support.people import browser, joined
from tests.support.statements import sent_statements
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]
Names = Mapping[str, str]
PASSWORD = "violet tractor under glass"


@dataclass(frozen=True)
class PageAttack:
    """The fields of a form, or of the query of a page.

    `guess`: the attacker guesses ids, so the work must be the same, too; otherwise they hold a stolen secret.
    """

    fields: Callable[[Names], Mapping[str, str]] = lambda names: {}
    guess: bool = True


def authorization_request(names: Names, **more: str) -> dict[str, str]:
    """An authorization request of the stranger's client for the named tenant."""
    return {
        "response_type": "code",
        "client_id": names["client_id"],
        "redirect_uri": names["redirect_uri"],
        "scope": "memory:read",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
        **more,
    }


ATTACKS = {
    "POST /account/grants/{grant_id:uuid}/end": PageAttack(),
    "POST /account/providers/{provider_id:uuid}/disconnect": PageAttack(),
    "POST /account/sessions/{session_id:uuid}/end": PageAttack(),
    "POST /account/passkeys/{passkey_id:uuid}/name": PageAttack(lambda names: {"name": "mine"}),
    "POST /account/passkeys/{passkey_id:uuid}/remove": PageAttack(),
    "POST /account/organisations/{tenant:str}/leave": PageAttack(),
    "GET /join/{secret:str}": PageAttack(),
    "POST /join/{secret:str}": PageAttack(lambda names: {"name": "Eve", "password": PASSWORD}),
    "GET /reset/{secret:str}": PageAttack(),
    "POST /reset/{secret:str}": PageAttack(lambda names: {"password": PASSWORD}),
    "GET /sign-in/callback/{provider_id:uuid}": PageAttack(lambda names: {"state": names["secret"], "code": "x"}),
    "POST /sign-in/provider": PageAttack(
        lambda names: {"organization": names["own_tenant"], "provider": names["provider_id"]}
    ),
    "GET /oauth/authorize": PageAttack(lambda names: authorization_request(names, tenant=names["tenant"])),
    "POST /oauth/authorize": PageAttack(lambda names: authorization_request(names, tenant=names["tenant"])),
    "POST /oauth/token": PageAttack(
        lambda names: {
            "grant_type": "refresh_token",
            "refresh_token": names["refresh"],
            "client_id": names["client_id"],
        },
        guess=False,
    ),
    "POST /oauth/introspect": PageAttack(
        lambda names: {"token": names["access"], "client_id": names["client_id"]}, guess=False
    ),
    "POST /oauth/revoke": PageAttack(
        lambda names: {"token": names["access"], "client_id": names["client_id"]}, guess=False
    ),
}
"""Every route outside /v1 that accepts an id or secret of a person or tenant."""

PUBLIC = {
    "GET /.well-known/oauth-protected-resource/mcp/x/{toolsets:str}",
    "GET /.well-known/oauth-protected-resource/t/{tenant:str}/mcp",
    "GET /.well-known/oauth-protected-resource/t/{tenant:str}/mcp/x/{toolsets:str}",
}
"""Routes that are public: the names of toolsets, and a tenant's trusted issuers, which clients read without a token."""

NOBODYS = {
    "GET /",
    "GET /.well-known/oauth-authorization-server",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /.well-known/openid-configuration",
    "GET /account",
    "POST /account/delete",
    "POST /account/passkeys",
    "POST /account/passkeys/options",
    "POST /account/password",
    "GET /forgot",
    "POST /forgot",
    "GET /health/live",
    "GET /health/ready",
    "GET /oauth/jwks.json",
    "POST /oauth/register",
    "POST /passkeys/sign-in",
    "POST /passkeys/sign-in/options",
    "GET /sign-in",
    "POST /sign-in",
    "POST /sign-in/local",
    "POST /sign-out",
}
"""Routes that accept no such id: they concern the signed-in person, or the sign-in."""

APART = ("/v1", "/mcp", "/t", "/app", "/assets")
"""Addresses of routes that other tests attack (/app: test_console.py), or that are the same for everybody."""

LAST = ["POST /account/organisations/{tenant:str}/leave", "POST /account/sessions/{session_id:uuid}/end"]
"""Attacks that end the membership or session, so they come last."""

UNSEEN = {
    "GET /join/{secret:str}",
    "POST /join/{secret:str}",
    "GET /reset/{secret:str}",
    "POST /reset/{secret:str}",
    "GET /sign-in/callback/{provider_id:uuid}",
}
"""Routes where even one's own id finds nothing: they need a secret, of which only a hash is stored."""

STORED = {
    "sessions": "SELECT to_jsonb(x)::text FROM sessions x WHERE person_id = $1",
    "passkeys": "SELECT to_jsonb(x)::text FROM passkeys x WHERE person_id = $1",
    "links": "SELECT to_jsonb(x)::text FROM password_resets x WHERE person_id = $1",
    "account": "SELECT to_jsonb(x)::text FROM people x WHERE id = $1",
}
"""Rows of a person that belong to no tenant."""


@dataclass(frozen=True)
class Side:
    """A person of a tenant, their browser, their OAuth client, and the ids of their objects."""

    caller: Caller
    person: Person
    http: httpx2.AsyncClient
    names: dict[str, str]


@pytest.fixture
async def sides(
    gateway: RunningGateway,
    db: Database,
    databases: Databases,
    settings: Settings,
    neighbours: Neighbours,
    owner: asyncpg.Connection,
) -> AsyncIterator[tuple[Side, Side]]:
    """A stranger and a victim, each signed in."""
    pepper = settings.key_secret.get_secret_value().encode()

    async def side(http: httpx2.AsyncClient, caller: Caller) -> Side:
        person = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        client = await HandClient.register(gateway, http)
        tokens = await client.tokens(Visitor(http, person.email), scope="memory:read offline_access")
        await resets.begin_reset(databases, person.id, pepper=pepper)
        await owner.execute(
            """INSERT INTO provider_identities (tenant_id, provider_id, subject, person_id)
            SELECT tenant_id, id, 'somebody', $2 FROM identity_providers WHERE tenant_id = $1""",
            caller.tenant_id,
            person.id,
        )
        async with db.personal(person.id) as session:
            await passkeys.insert_passkey(
                session,
                person.id,
                credential_id=person.id.bytes,
                public_key=b"x",
                sign_count=0,
                name="Laptop",
                most=MAX_PASSKEYS,
            )
        return Side(
            caller,
            person,
            http,
            {
                "tenant": caller.tenant,
                "grant_id": str(await granted(owner, caller.tenant_id, person.id)),
                "session_id": str(await owner.fetchval("SELECT id FROM sessions WHERE person_id = $1", person.id)),
                "passkey_id": str(await owner.fetchval("SELECT id FROM passkeys WHERE person_id = $1", person.id)),
                "provider_id": str(
                    await owner.fetchval("SELECT id FROM identity_providers WHERE tenant_id = $1", caller.tenant_id)
                ),
                "secret": str(await owner.fetchval("SELECT id FROM password_resets WHERE person_id = $1", person.id)),
                "access": tokens["access_token"],
                "refresh": tokens["refresh_token"],
                "client_id": client.id,
                "redirect_uri": client.redirect_uri,
            },
        )

    async with browser(gateway) as mine, browser(gateway) as theirs:
        yield await side(mine, neighbours[0].caller), await side(theirs, neighbours[1].caller)


def test_each_page_is_attacked_or_accepts_no_ids(settings: Settings) -> None:
    there = {
        f"{method} {route.path}"
        for route in create_app(settings).routes
        if not route.path.startswith(APART) and hasattr(route, "methods")
        for method in route.methods - {"OPTIONS", "HEAD"}
    }
    assert there == {*ATTACKS, *NOBODYS, *PUBLIC}
    assert not [page for page in NOBODYS if "{" in page]


@pytest.mark.proves("security: foreign-handles")
async def test_objects_of_another_person_look_like_unknown_ones(
    sides: tuple[Side, Side], neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """In the answer and, where ids can be guessed, in the work, too. Nothing of the other person changes."""
    stranger, victim = sides
    own = {name: stranger.names[name] for name in ("client_id", "redirect_uri")} | {
        "own_tenant": stranger.caller.tenant
    }
    foreign = victim.names | own
    unknown = {name: f"{value[:-12]}{str(uuid4())[-12:]}" for name, value in victim.names.items()} | own
    unknown["tenant"] = "nobodys-name"
    before = await everything(owner, neighbours[1], victim.person)
    for route, attack in ATTACKS.items():
        told = []
        for names in (foreign, unknown):
            with sent_statements() as sent:
                answer = await send(stranger.http, route, attack, names)
            text = answer.text + answer.headers.get("location", "")
            for name in set(names) - set(own):
                text = text.replace(names[name], "…")
            told.append((answer.status_code, text, sent if attack.guess else []))
            assert answer.status_code < 500, (route, answer.text)
        assert told[0] == told[1], route
    assert await everything(owner, neighbours[1], victim.person) == before


async def test_the_same_pages_find_ones_own_objects(sides: tuple[Side, Side], owner: asyncpg.Connection) -> None:
    """This shows that ownership is what hides the objects of others."""
    stranger, _ = sides
    own = of_ones_own(stranger)
    unknown = like(stranger.names) | own
    found = set()
    for route in sorted(ATTACKS, key=lambda route: LAST.index(route) if route in LAST else -1):
        told = []
        for names in (unknown, {**stranger.names, **own}):
            with sent_statements() as sent:
                answer = await send(stranger.http, route, ATTACKS[route], names)
            told.append((answer.status_code, sent))
        if told[0] != told[1]:
            found.add(route)
    assert {*ATTACKS} - found == UNSEEN


def of_ones_own(side: Side) -> dict[str, str]:
    """The fields of the stranger's own client, which every request has."""
    return {name: side.names[name] for name in ("client_id", "redirect_uri")} | {"own_tenant": side.caller.tenant}


def like(names: Names) -> dict[str, str]:
    """Similar names that do not exist."""
    return {name: value[:-12] + str(uuid4())[-12:] for name, value in names.items()} | {"tenant": "nobodys-name"}


async def send(http: httpx2.AsyncClient, route: str, attack: PageAttack, names: Names) -> httpx2.Response:
    """Send an attack like a signed-in browser, with the fields of our forms."""
    method, _, path = route.partition(" ")
    path, fields = re.sub(r"\{(\w+):\w+\}", r"{\1}", path).format(**names), dict(attack.fields(names))
    if method == "GET":
        return await http.get(path, params=fields)
    token = re.findall(r'name="form_token" value="(\w+)"', (await http.get("/account")).text)
    form = {"form_token": token[0]} if token and not path.startswith("/oauth/") else {}
    if path == "/oauth/authorize":
        path, form = f"{path}?{httpx2.QueryParams(fields)}", {"form_token": token[0], "decision": "allow"}
        fields = {"scope": "memory:read"}
    return await http.post(path, data=form | fields, headers={"Origin": str(http.base_url).rstrip("/")})


async def everything(owner: asyncpg.Connection, neighbour: Neighbour, person: Person) -> list[Any]:
    """Every row of the tenant and of the person."""
    stored = [await owner.fetch(query, person.id) for query in STORED.values()]
    return [lasting(await contents(owner, neighbour)), [[row[0] for row in rows] for rows in stored]]
