"""Cursors, entity tags and idempotency keys of another tenant reveal nothing."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.attacks import ROUTES, Attack, admin_of, anonymous, ids_in, lasting, names_of
from tests.support.documents import DOCUMENT
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers
from tests.support.memories import Agent
from tests.support.people import browser, joined, sign_in
from tests.support.statements import sent_statements
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]

SECOND = {
    "oauth_grants": "'{}'",
    "invitations": """jsonb_build_object('email', 'second@example.com', 'hash', sha256(x.id::text::bytea))""",
    "webhooks": "'{}'",
    "webhook_deliveries": '\'{"source": "second"}\'',
}
"""Tables in which tenants get a second row, and the columns that differ in it besides its id."""


def _parameters(path: str, method: str) -> str:
    return json.dumps(DOCUMENT["paths"][path][method].get("parameters", ()))


PAGED = {path for method, path in ROUTES if method == "get" and '"cursor"' in _parameters(path, method)}
TAGGED = {path for method, path in ROUTES if method == "get" and '"If-None-Match"' in _parameters(path, method)}
CONDITIONAL = [(method, path) for method, path in ROUTES if '"If-Match"' in _parameters(path, method)]
KEYED = [(method, path) for method, path in ROUTES if '"Idempotency-Key"' in _parameters(path, method)]


@dataclass(frozen=True)
class Party:
    """A tenant, a browser in which one of its owners is signed in, and ids of each kind."""

    caller: Caller
    http: httpx2.AsyncClient
    names: dict[str, str]


@asynccontextmanager
async def party(
    gateway: RunningGateway, databases: Databases, settings: Settings, owner: asyncpg.Connection, neighbour: Neighbour
) -> AsyncIterator[Party]:
    """A tenant that has two objects of every listed kind."""
    caller = neighbour.caller
    pepper = settings.key_secret.get_secret_value().encode()
    await neighbour.create("Ada Zuse", "Zuse")
    await neighbour.relate(("Ada", "Zuse", "admires"))
    await Agent(databases.home, caller, "second").create("Babbage")
    names = await names_of(owner, caller)
    for table, differs in SECOND.items():
        await owner.execute(
            f"""INSERT INTO {table} SELECT (jsonb_populate_record(x,
                jsonb_build_object('id', gen_random_uuid()) || {differs}::jsonb)).*
            FROM {table} x WHERE tenant_id = $1 LIMIT 1""",
            caller.tenant_id,
        )
    await owner.execute(
        """INSERT INTO dismissals (tenant_id, graph_id, node_id, other_id, dismissed_by)
        SELECT tenant_id, graph_id, least(one.id, other.id), greatest(one.id, other.id), 'a second pair'
        FROM nodes one JOIN nodes other USING (tenant_id, graph_id)
        WHERE tenant_id = $1 AND one.name = 'Ada Zuse' AND other.name = 'Zuse'""",
        caller.tenant_id,
    )
    await owner.execute(
        "UPDATE passages SET refused = 'too odd', refused_at = now() WHERE tenant_id = $1", caller.tenant_id
    )
    await owner.execute(
        "INSERT INTO usage_hourly SELECT $1, date_trunc('hour', now()), 'tool', name, 1 "
        "FROM unnest('{recall, remember}'::text[]) name",
        caller.tenant_id,
    )
    person = await joined(databases, caller, Role.OWNER, pepper=pepper)
    async with browser(gateway) as http, browser(gateway) as elsewhere:
        for each in (http, elsewhere):
            assert (await sign_in(each, person.email)).status_code == 303
        http.headers |= {"x-recollect-tenant": caller.tenant, "Origin": gateway.url}
        yield Party(caller, http, names)


@pytest.fixture
async def parties(
    gateway: RunningGateway,
    databases: Databases,
    settings: Settings,
    neighbours: Neighbours,
    owner: asyncpg.Connection,
    issue: NewApiKey,
) -> AsyncIterator[tuple[Party, Party]]:
    """A stranger and a victim."""
    for neighbour in neighbours:
        async with gateway.http((await issue(neighbour.caller)).secret, **rpc_headers()) as http:
            tagged = {"entityName": "Ada", "tags": ["pioneer"]}
            made = await gateway.call(http, "add_tags", tagged, path="/mcp/x/all")
            assert not made["isError"], made
    async with (
        party(gateway, databases, settings, owner, neighbours[0]) as stranger,
        party(gateway, databases, settings, owner, neighbours[1]) as victim,
    ):
        yield stranger, victim


def beside(cursor: str) -> str:
    """A similar cursor that names nothing: the ids in it have other ends."""
    other = str(uuid4())[-12:]
    return re.sub(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-)[0-9a-f]{12}", rf"\g<1>{other}", cursor)


class TestCursors:
    @pytest.mark.proves("security: foreign-handles")
    async def test_a_cursor_of_another_tenant_acts_like_an_unknown_one(
        self, parties: tuple[Party, Party], neighbours: Neighbours, owner: asyncpg.Connection
    ) -> None:
        """For every list with pages."""
        stranger, victim = parties
        hidden = ids_in(await contents(owner, neighbours[1])) - ids_in(await contents(owner, neighbours[0]))
        for path in sorted(PAGED):
            cursor = await self.second_page(victim, path)
            told = []
            await Attack("get", path, own(stranger)).send(stranger.http)  # The gateway knows the stranger's graph.
            for each in {cursor: "of the victim", beside(cursor): "of nobody"}:
                with sent_statements() as sent:
                    answer = await Attack("get", path, own(stranger), cursor=each).send(stranger.http)
                assert answer.is_success, (path, answer.text)
                assert [word for word in hidden if word in answer.text.replace(each, "…")] == [], (path, answer.text)
                told.append((answer.json()["items"], sent))
            assert told[0] == told[-1], path

    async def second_page(self, victim: Party, path: str) -> str:
        """The cursor of the second page of the victim's list."""
        params = {"limit": "1"} | ({"q": "Zuse"} if path.endswith("/search") else {})
        page = await victim.http.get(path.format(**own(victim)), params=params)
        assert page.is_success, (path, page.text)
        assert page.json()["next_cursor"], f"{path}: the victim has one of it at most: give it another in `party`"
        return str(page.json()["next_cursor"])


def own(party: Party) -> dict[str, str]:
    """The ids of a party's own objects, with the graph by name."""
    return {**party.names, "name": "default"}


class TestEntityTags:
    async def test_an_object_of_another_tenant_with_its_tag_looks_like_an_unknown_one(
        self, parties: tuple[Party, Party], neighbours: Neighbours, owner: asyncpg.Connection
    ) -> None:
        stranger, victim = parties
        unknown = {name: str(uuid4()) for name in victim.names}
        before = lasting(await contents(owner, neighbours[1]))
        for method, path in [*(("get", path) for path in sorted(TAGGED)), *CONDITIONAL]:
            tag = await tag_of(victim, path)
            headers = {"If-None-Match": tag} if method == "get" else {"If-Match": tag}
            told = []
            for names in (victim.names, unknown) if "{" in path else ():
                attack = Attack(method, path, names, headers=headers)
                with sent_statements() as sent:
                    answer = await attack.send(stranger.http)
                told.append((anonymous(answer, attack), sent))
            if told:
                assert told[0] == told[1], path
                assert told[0][0].startswith("404"), (path, told)
        assert lasting(await contents(owner, neighbours[1])) == before

    @pytest.mark.proves("security: foreign-handles")
    async def test_a_tag_of_another_tenant_never_matches(self, parties: tuple[Party, Party]) -> None:
        stranger, victim = parties
        for path in sorted(TAGGED):
            asked = Attack("get", path, own(stranger), headers={"If-None-Match": await tag_of(victim, path)})
            assert (await asked.send(stranger.http)).status_code == 200, path
        for method, path in CONDITIONAL:
            asked = Attack(method, path, own(stranger), headers={"If-Match": await tag_of(victim, path)})
            assert (await asked.send(stranger.http)).status_code == 412, (method, path)
            asked = Attack(method, path, own(stranger), headers={"If-Match": await tag_of(stranger, path)})
            assert (await asked.send(stranger.http)).status_code != 412, (method, path)


async def tag_of(party: Party, path: str) -> str:
    """The entity tag of a party's own object, from the route that reads it."""
    place = path if path in TAGGED else path.rpartition("/")[0]
    told = await Attack("get", place, own(party)).send(party.http)
    assert told.is_success, (place, told.text)
    return told.headers["etag"]


class TestIdempotencyKeys:
    @pytest.mark.proves("security: foreign-handles")
    async def test_an_idempotency_key_of_another_tenant_acts_like_a_new_one(
        self,
        gateway: RunningGateway,
        issue: NewApiKey,
        parties: tuple[Party, Party],
        neighbours: Neighbours,
        owner: asyncpg.Connection,
    ) -> None:
        """On every route that accepts keys: no answer of the other tenant is replayed, and none causes a conflict."""
        stranger, victim = parties
        hidden = ids_in(await contents(owner, neighbours[1])) - ids_in(await contents(owner, neighbours[0]))
        kept = 0
        async with (
            admin_of(gateway, issue, victim.caller) as theirs,
            admin_of(gateway, issue, stranger.caller) as mine,
        ):
            for method, path in KEYED:
                names = {**victim.names, "name": "default"}
                used = Attack(
                    method, path, names, victim.names["name"], headers={"Idempotency-Key": f"{method} {path}"}
                )
                new = Attack(method, path, names, victim.names["name"], headers={"Idempotency-Key": str(uuid4())})
                done = await used.send(theirs)
                again = await used.send(theirs)
                kept += "idempotency-replayed" in again.headers
                with sent_statements() as sent:
                    answer = await used.send(mine)
                where = (method, path, done.status_code, answer.status_code, answer.text)
                assert "idempotency-replayed" not in answer.headers, where
                assert "idempotency" not in answer.text, where
                assert [word for word in hidden - used.requested_ids() if word in answer.text] == [], where
                if not answer.is_success:  # What was done is another thing when it is done once more.
                    with sent_statements() as sent_of_new:
                        assert anonymous(await new.send(mine), new) == anonymous(answer, used), where
                    assert sent == sent_of_new, where
        assert kept > len(KEYED) / 2, kept
