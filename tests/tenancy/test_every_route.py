"""Every route with another tenant's ids, names and cursors: with both guards, and with each alone, nothing of it."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.platform.db import Database
from tests.contract.test_openapi_fuzz import DOCUMENT, OF_TENANTS
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.guards import Attacked, ids_of
from tests.support.routes import OPEN_TO_ALL, QUERY, example_request
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]

NAMED = {
    "key_id": "SELECT id FROM api_keys WHERE tenant_id = $1",
    "person_id": "SELECT person_id FROM members WHERE tenant_id = $1",
    "invitation_id": "SELECT id FROM invitations WHERE tenant_id = $1",
    "domain_id": "SELECT id FROM email_domains WHERE tenant_id = $1",
    "issuer_id": "SELECT id FROM trusted_issuers WHERE tenant_id = $1",
    "provider_id": "SELECT id FROM identity_providers WHERE tenant_id = $1",
    "grant_id": "SELECT id FROM oauth_grants WHERE tenant_id = $1",
    "webhook_id": "SELECT id FROM webhooks WHERE tenant_id = $1",
    "delivery_id": "SELECT id FROM webhook_deliveries WHERE tenant_id = $1",
    "job_id": "SELECT job_id FROM job_outputs WHERE tenant_id = $1",
    "session_id": "SELECT s.id FROM sessions s JOIN members m USING (person_id) WHERE m.tenant_id = $1",
    "name": "SELECT id FROM graphs WHERE tenant_id = $1",
    "node": "SELECT id FROM nodes WHERE tenant_id = $1 AND name = 'Zuse'",
}
"""What paths name, and where a tenant has one."""

ROUTES = sorted(
    (route for route in OF_TENANTS if route[1] not in OPEN_TO_ALL),
    key=lambda route: (route[0] == "delete", -len(route[1])),
)
"""What takes away comes last, and last of all whole graphs."""

SECRETS = ("Zuse", "platypus")


@dataclass(frozen=True)
class Attack:
    """One request; `names` are what its path names, `graph` what its body does."""

    method: str
    path: str
    names: dict[str, str]
    graph: str
    cursor: str | None = None

    async def send(self, http: httpx2.AsyncClient) -> httpx2.Response:
        """As the document's example says."""
        asked = example_request(DOCUMENT, self.method, self.path, self.names, cursor=self.cursor, graphs=[self.graph])
        return await http.request(self.method, **asked)

    def asked(self) -> set[str]:
        """The ids that it holds, which an answer may repeat."""
        return {*self.names.values(), self.graph}


@pytest.fixture
async def victim(neighbours: Neighbours, owner: asyncpg.Connection) -> Neighbour:
    """Has something of each kind, and some things that the other has not."""
    _, victim = neighbours
    await victim.observe("Ada", "kept a platypus called Ferdinand")
    await victim.create("Zuse")
    await owner.execute(
        """INSERT INTO sessions (id, person_id, hash, expires_at, user_agent, address)
        SELECT gen_random_uuid(), person_id, sha256(person_id::text::bytea), now() + interval '1 hour', '', ''
        FROM members WHERE tenant_id = $1""",
        victim.caller.tenant_id,
    )
    return victim


@asynccontextmanager
async def admin_of(
    gateway: RunningGateway, issue: NewApiKey, neighbour: Neighbour
) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http((await issue(neighbour.caller, kind="admin")).secret) as http:
        yield http


async def names_of(owner: asyncpg.Connection, neighbour: Neighbour) -> dict[str, str]:
    """Something of a tenant's for whatever a path names."""
    names = {name: await owner.fetchval(query, neighbour.caller.tenant_id) for name, query in NAMED.items()}
    assert None not in names.values(), names
    return {name: str(id_) for name, id_ in names.items()}


def attacks(names: dict[str, str]) -> list[Attack]:
    """Every route with these ids; those within a graph also in the caller's own graph."""
    made = []
    for method, path in ROUTES:
        own = {**names, "name": "default"}
        made.append(Attack(method, path, names, names["name"]))
        if "{name}" in path:
            made.append(Attack(method, path, own, names["name"]))
    return made


def anonymous(response: httpx2.Response, attack: Attack) -> str:
    """Status and error of an answer, without the ids that were asked for; of what was done, only that it was."""
    text = "" if response.is_success else response.text
    for asked in attack.asked():
        text = text.replace(asked, "…")
    return f"{response.status_code} {text}"


def test_whatever_a_path_names_the_attacks_have_one() -> None:
    placeholders = {name for _, path in ROUTES for name in re.findall(r"\{(\w+)\}", path)}
    assert placeholders == set(NAMED)


async def test_foreign_ids_look_like_unknown_ones_and_nothing_moves(
    attacked: Attacked,
    gateway: RunningGateway,
    issue: NewApiKey,
    db: Database,
    neighbours: Neighbours,
    victim: Neighbour,
    owner: asyncpg.Connection,
) -> None:
    stranger, _ = neighbours
    async with admin_of(gateway, issue, victim) as http:
        cursors = await cursors_of(http)
    names = await names_of(owner, victim)
    unknown = {name: str(uuid4()) for name in names}
    before = lasting(await contents(owner, victim))
    hidden = ids_in(before) - ids_in(await contents(owner, stranger)) | set(SECRETS)
    ids = await ids_of(db, stranger.caller), await ids_of(db, victim.caller)
    async with admin_of(attacked.gateway, issue, stranger) as http:
        with attacked.by(*ids):
            for foreign, other in zip(attacks(names), attacks(unknown), strict=True):
                answer = await foreign.send(http)
                where = (foreign, answer.status_code, answer.text)
                assert [word for word in hidden - foreign.asked() if word in answer.text] == [], where
                if foreign.path.format(**foreign.names) != other.path.format(**other.names):
                    assert anonymous(answer, foreign) == anonymous(await other.send(http), other), where
                if attacked.guards.predicates:
                    assert answer.status_code < 500, where
            for path, cursor in cursors.items():
                answer = await Attack("get", path, {**names, "name": "default"}, "", cursor).send(http)
                assert [word for word in hidden - {cursor} if word in answer.text] == [], (path, answer.text)
    assert lasting(await contents(owner, victim)) == before


async def test_where_no_guard_stands_the_same_routes_find_it_all(
    unguarded: Attacked,
    issue: NewApiKey,
    db: Database,
    neighbours: Neighbours,
    victim: Neighbour,
    owner: asyncpg.Connection,
) -> None:
    """So that what stops them with one guard is that guard."""
    stranger, _ = neighbours
    names = await names_of(owner, victim)
    ids = await ids_of(db, stranger.caller), await ids_of(db, victim.caller)
    hidden = ids_in(await contents(owner, victim)) - ids_in(await contents(owner, stranger)) | set(SECRETS)
    found = set()
    async with admin_of(unguarded.gateway, issue, stranger) as http:
        with unguarded.by(*ids):
            for attack in [attack for attack in attacks(names) if attack.method == "get"]:
                text = (await attack.send(http)).text
                if [word for word in hidden - attack.asked() - {QUERY["q"]} if word in text]:
                    found.add(attack.path)
    assert len(found) > 8, sorted(found)


async def cursors_of(http: httpx2.AsyncClient) -> dict[str, str]:
    """Of each list that has a second page, where that begins."""
    cursors = {}
    for method, path in ROUTES:
        if method == "get" and '"cursor"' in json.dumps(DOCUMENT["paths"][path]["get"]) and "_id}" not in path:
            params = {"limit": "1"} | ({"q": "Ada"} if path.endswith("/search") else {})
            page = await http.get(path.format(name="default", node="Ada"), params=params)
            if page.is_success and page.json().get("next_cursor"):
                cursors[path] = page.json()["next_cursor"]
    assert len(cursors) > 3
    return cursors


def ids_in(rows: list[str]) -> set[str]:
    """Every id that stands in these rows."""
    return set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "".join(rows)))


def lasting(rows: list[str]) -> list[str]:
    """Without what the victim's own calls leave sometime after: that they were made, and when a key was used."""
    kept = [re.sub(r'"last_used_at": ("[^"]*"|null)', "", row) for row in rows if '"hour": ' not in row]
    return sorted(kept)
