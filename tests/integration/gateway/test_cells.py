"""A gateway of two cells over HTTP: agents and people of both, and a cell that is away."""

from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest
from redis.asyncio import Redis

from recollect.accounts.members import service as members
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.fairness.presence import key_of
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from tests.integration.gateway.test_provider_sign_in import set_up
from tests.support.cells import OTHER
from tests.support.gateway import RunningGateway, answer, eventually, issue_key, serving
from tests.support.identity_provider import Account, identity_provider, sign_in_by
from tests.support.oauth import HandClient
from tests.support.people import PASSWORD, browser, joined, send_form, sign_in

AWAY = CellUrls(database_url="postgresql://nobody@127.0.0.1:9/nowhere")


@pytest.fixture
def pepper(celled: Settings) -> bytes:
    return celled.key_secret.get_secret_value().encode()


@pytest.fixture
async def ada(cells: Databases, native: Caller, resident: Caller, pepper: bytes) -> Person:
    """A member of a tenant of each cell."""
    person = await joined(cells, native, Role.OWNER, pepper=pepper)
    async with cells.of(resident.tenant_id).transaction(resident) as tx:
        issued = await members.invite(tx, person.email, Role.ADMIN, pepper=pepper)
    invitation = await members.open_invitation(cells, issued.secret, pepper=pepper)
    await members.join(cells, invitation, person)
    return person


@pytest.fixture
async def http(celled_gateway: RunningGateway, ada: Person) -> AsyncIterator[httpx2.AsyncClient]:
    """Ada's browser, in which she is signed in."""
    async with browser(celled_gateway) as http:
        await sign_in(http, ada.email)
        yield http


async def status_as(http: httpx2.AsyncClient, tenant: str, path: str = "/v1/plan") -> int:
    return (await http.get(path, headers={"X-Recollect-Tenant": tenant})).status_code


async def test_agents_of_both_cells_work_side_by_side(
    celled: Settings, celled_gateway: RunningGateway, cells: Databases, native: Caller, resident: Caller
) -> None:
    for caller in (native, resident):
        key = (await issue_key(cells.of(caller.tenant_id), celled, caller)).secret
        async with celled_gateway.client(key, "/mcp") as client:
            await answer(client, "remember", items=[{"text": f"The depot in {caller.tenant} closes at four."}])
            found = await answer(client, "recall", query="depot")
        assert [memory["text"] for memory in found["memories"]] == [f"The depot in {caller.tenant} closes at four."]


async def test_workers_see_calls_of_their_own_cells_tenants(
    celled: Settings, celled_gateway: RunningGateway, cells: Databases, resident: Caller
) -> None:
    key = (await issue_key(cells.of(resident.tenant_id), celled, resident)).secret
    async with Redis.from_url(celled.redis_url) as redis, celled_gateway.http(key) as http:

        async def is_told() -> bool:
            assert (await http.get("/v1/plan")).status_code == 200
            home, other = [await redis.zrange(key_of(cell), 0, -1) for cell in (HOME, OTHER)]
            assert resident.tenant_id.bytes not in home
            return resident.tenant_id.bytes in other

        await eventually(is_told)


async def test_a_person_can_be_a_member_in_both_cells_and_is_logged_in_both(
    http: httpx2.AsyncClient, ada: Person, native: Caller, resident: Caller, owner_b: asyncpg.Connection
) -> None:
    shown = (await http.get("/account")).text
    for caller in (native, resident):
        assert caller.tenant in shown
        assert await status_as(http, caller.tenant) == 200
        log = (await http.get("/v1/audit", headers={"X-Recollect-Tenant": caller.tenant})).json()["items"]
        assert {"member.joined", "session.started"} <= {entry["action"] for entry in log}
    row = await owner_b.fetchrow("SELECT email, name, password_hash FROM people WHERE id = $1", ada.id)
    assert row is not None
    assert tuple(row) == (ada.email, ada.name, None), "who she is, and no password"
    assert await owner_b.fetchval("SELECT count(*) FROM sessions WHERE person_id = $1", ada.id) == 0
    left = await send_form(http, shown, f"/account/organisations/{resident.tenant}/leave")
    assert left.status_code == 303, left.text
    assert await status_as(http, resident.tenant) == 401
    assert await status_as(http, native.tenant) == 200


async def test_people_sign_in_and_work_in_other_cells_while_one_is_away(
    celled: Settings, cells: Databases, ada: Person, native: Caller, resident: Caller
) -> None:
    keys = {
        caller.tenant: (await issue_key(cells.of(caller.tenant_id), celled, caller)).secret
        for caller in (native, resident)
    }
    without = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 2.0})
    with serving(without) as gateway:
        async with browser(gateway) as http:
            assert (await http.get("/health/ready")).status_code == 200
            assert (await sign_in(http, ada.email)).status_code == 303
            shown = await http.get("/account")
            assert (shown.status_code, native.tenant in shown.text, resident.tenant in shown.text) == (200, True, False)
            assert await status_as(http, native.tenant) == 200
            assert await status_as(http, resident.tenant) == 503, "and not that she is no member"
        async with gateway.http(keys[native.tenant]) as http:
            assert (await http.get("/v1/plan")).status_code == 200
        async with gateway.http(keys[resident.tenant]) as http:
            refused = await http.get("/v1/plan")
            assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
            assert "Retry-After" in refused.headers


async def test_a_cell_that_lacks_a_migration_fails_only_for_its_own_tenants(
    celled: Settings, cells: Databases, native: Caller, resident: Caller, owner_b: asyncpg.Connection
) -> None:
    """Until the migration is applied; no gateway need be restarted then."""
    keys = {
        caller.tenant: (await issue_key(cells.of(caller.tenant_id), celled, caller)).secret
        for caller in (native, resident)
    }
    last = await owner_b.fetchrow("SELECT * FROM schema_migrations ORDER BY name DESC LIMIT 1")
    assert last is not None
    await owner_b.execute("DELETE FROM schema_migrations WHERE name = $1", last["name"])
    try:
        with serving(celled) as gateway:
            async with gateway.http(keys[native.tenant]) as at_home, gateway.http(keys[resident.tenant]) as away:
                assert (await at_home.get("/v1/plan")).status_code == 200
                assert (await at_home.get("/health/ready")).status_code == 200
                refused = await away.get("/v1/plan")
                assert (refused.status_code, refused.json()["code"]) == (503, "schema_outdated"), refused.text
                assert "recollect migrate" in refused.json()["detail"]
                await owner_b.execute(
                    "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)", last["name"], last["checksum"]
                )
                assert (await away.get("/v1/plan")).status_code == 200
    finally:
        await owner_b.execute(
            "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            last["name"],
            last["checksum"],
        )


async def test_requests_for_a_tenant_in_an_absent_cell_get_a_retryable_error(
    celled: Settings, cells: Databases, ada: Person, native: Caller, resident: Caller, pepper: bytes
) -> None:
    """A tenant that exists is not reported as missing."""
    beside = await joined(cells, resident, Role.OWNER, pepper=pepper)
    without = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 2.0})
    with serving(without) as gateway:
        async with browser(gateway) as http:
            client = await HandClient.register(gateway, http)
            for tenant, expected in ((native.tenant, 200), (resident.tenant, 503)):
                document = f"/.well-known/oauth-protected-resource/t/{tenant}/mcp"
                assert (await http.get(document)).status_code == expected
                assert (await http.get("/sign-in", params={"organization": tenant})).status_code == expected
            unknown = {"organization": "somebody@nobodys-domain.example"}
            assert (await http.get("/sign-in", params=unknown)).status_code == 503
            await sign_in(http, ada.email)
            for tenant, expected in ((native.tenant, 200), (resident.tenant, 503), ("nobodys-name", 400)):
                assert (await http.get(client.request(tenant=tenant))).status_code == expected
        async with browser(gateway) as http:
            await sign_in(http, beside.email)
            assert (await http.get(client.request())).status_code == 503


async def test_a_person_known_by_a_provider_is_in_its_tenants_cell_and_erased_with_it(
    celled: Settings,
    cells: Databases,
    resident: Caller,
    pepper: bytes,
    owner: asyncpg.Connection,
    owner_b: asyncpg.Connection,
) -> None:
    people = "SELECT count(*) FROM people p LEFT JOIN sessions s ON s.person_id = p.id WHERE p.email = $1"
    with serving(celled.model_copy(update={"outbound_networks": ["127.0.0.0/8"]})) as gateway:
        async with identity_provider() as idp, browser(gateway) as http:
            acme = await set_up(cells, resident, idp, pepper)
            account = await acme.join(http)
            assert account.email in (await http.get("/account")).text
            assert await status_as(http, resident.tenant) == 200
            assert [await cell.fetchval(people, account.email) for cell in (owner, owner_b)] == [0, 1]
            await owner_b.execute("UPDATE tenants SET place = 'departed' WHERE id = $1", resident.tenant_id)
            assert (await http.get("/account")).status_code == 503, (
                "the session is not good here any more, nor yet elsewhere"
            )


async def test_a_changed_password_ends_sessions_in_every_cell(
    celled: Settings, cells: Databases, ada: Person, resident: Caller, pepper: bytes, owner_b: asyncpg.Connection
) -> None:
    with serving(celled.model_copy(update={"outbound_networks": ["127.0.0.0/8"]})) as gateway:
        async with identity_provider() as idp, browser(gateway) as http, browser(gateway) as other:
            acme = await set_up(cells, resident, idp, pepper)
            await sign_in(http, ada.email)
            idp.account = Account(email=ada.email)
            connected = await sign_in_by(http, idp, "/account")
            assert connected.headers["location"] == "/account"
            assert (await sign_in_by(other, idp, acme.page)).status_code == 303
            assert await status_as(other, resident.tenant) == 200
            shown = (await http.get("/account")).text
            new = "orange ladder beside rivers"
            assert (await send_form(http, shown, "/account/password", old_password=PASSWORD, password=new)).is_success
            assert await status_as(other, resident.tenant) == 401
            assert await status_as(http, resident.tenant) == 200
    noted = "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'person.password_changed'"
    assert await owner_b.fetchval(noted, resident.tenant_id) == 1
