"""/v1/tenant and /v1/sessions: settings of an organisation, and a person's sessions."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, everything, problem
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import browser, joined, sign_in


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


@pytest.fixture
async def agent(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        yield http


async def changed(http: httpx2.AsyncClient, **body: Any) -> httpx2.Response:
    return await http.patch("/v1/tenant", json=body)


class TestTenant:
    async def test_every_credential_can_read_its_tenant(
        self, agent: httpx2.AsyncClient, caller: Caller, settings: Settings
    ) -> None:
        told = await done(agent, "GET", "/v1/tenant")
        assert (told["id"], told["slug"], told["status"]) == (str(caller.tenant_id), caller.tenant, "active")
        assert told["plan"] == "unlimited"
        assert told["settings"] == {
            "retention_days": None,
            "default_retention_days": settings.retention_days,
            "time_zone": None,
        }

    async def test_given_fields_change_and_others_stay(self, admin: httpx2.AsyncClient, caller: Caller) -> None:
        told = (await changed(admin, name="Analytical Engines")).json()
        assert (told["name"], told["slug"], told["settings"]["retention_days"]) == (
            "Analytical Engines",
            caller.tenant,
            None,
        )
        told = (await changed(admin, settings={"retention_days": 7.5})).json()
        assert (told["name"], told["settings"]["retention_days"]) == ("Analytical Engines", 7.5)
        assert (await changed(admin, settings={})).json() == told
        told = (await changed(admin, settings={"retention_days": None})).json()
        assert told["settings"]["retention_days"] is None
        assert await done(admin, "GET", "/v1/tenant") == told

    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ({"name": ""}, "name"),
            ({"name": " \u3000 "}, "name"),
            ({"name": None}, "name"),
            ({"name": "a\tb"}, "name"),
            ({"name": "a" * 201}, "name"),
            ({"settings": {"retention_days": 0.5}}, "settings.retention_days"),
            ({"settings": {"retention_days": 3651}}, "settings.retention_days"),
            ({"settings": {"colour": "blue"}}, "settings.colour"),
            ({"plan": "large"}, "plan"),
            ({"slug": "mine"}, "slug"),
        ],
    )
    async def test_an_invalid_field_is_refused_with_its_path(
        self, admin: httpx2.AsyncClient, body: dict[str, Any], path: str
    ) -> None:
        before = await done(admin, "GET", "/v1/tenant")
        assert problem(await changed(admin, **body), 400)["path"] == path
        assert await done(admin, "GET", "/v1/tenant") == before

    async def test_only_admins_can_change_the_tenant(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        problem(await changed(agent, name="mine"), 403, "scope_required")
        for role, status in ((Role.READER, 403), (Role.MEMBER, 403), (Role.ADMIN, 200), (Role.OWNER, 200)):
            person = await joined(databases, caller, role, pepper=pepper)
            async with browser(gateway) as http:
                await sign_in(http, person.email)
                http.headers["X-Recollect-Tenant"] = caller.tenant
                assert (await changed(http, name=str(role))).status_code == status
                assert (await http.get("/v1/tenant")).status_code == 200

    async def test_another_tenant_is_not_changed(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        other = await new_tenant()
        before = await done(admin, "GET", "/v1/tenant")
        async with gateway.http((await issue(operator_caller(other), kind="admin")).secret) as http:
            assert (await changed(http, name="theirs", settings={"retention_days": 1})).status_code == 200
            assert (await done(http, "GET", "/v1/tenant"))["id"] == str(other.id)
        assert await done(admin, "GET", "/v1/tenant") == before

    async def test_a_name_is_stored_without_surrounding_white_space(self, admin: httpx2.AsyncClient) -> None:
        assert (await changed(admin, name="  Acme Ltd ")).json()["name"] == "Acme Ltd"


class TestSessions:
    async def test_a_person_lists_and_ends_their_own_sessions(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        async with browser(gateway) as here, browser(gateway) as there:
            for http in (there, here):
                await sign_in(http, person.email)
                http.headers["X-Recollect-Tenant"] = caller.tenant
            listed = await everything(here, "/v1/sessions", 1)
            assert [session["current"] for session in listed] == [True, False]
            assert {session["address"] for session in listed} == {"127.0.0.1"}
            ended = (await here.delete(f"/v1/sessions/{listed[1]['id']}")).json()
            assert (ended["id"], ended["current"]) == (listed[1]["id"], False)
            assert ended["revoked_at"] is not None
            assert (await here.delete(f"/v1/sessions/{listed[1]['id']}")).json() == ended
            problem(await there.get("/v1/sessions"), 401)
            assert [session["id"] for session in await everything(here, "/v1/sessions", 50)] == [listed[0]["id"]]

    async def test_a_session_is_ended_whatever_the_idempotency_key(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        """Keys are stored by tenant, and a session belongs to none. The document offers no key here, either."""
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        async with browser(gateway) as here, browser(gateway) as there, browser(gateway) as elsewhere:
            for http in (elsewhere, there, here):
                await sign_in(http, person.email)
                http.headers["X-Recollect-Tenant"] = caller.tenant
            listed = await everything(here, "/v1/sessions", 50)
            for session in (listed[1], listed[2], listed[1]):
                ended = await here.delete(f"/v1/sessions/{session['id']}", headers={"Idempotency-Key": "one"})
                assert (ended.status_code, ended.json()["id"]) == (200, session["id"])
            document = (await here.get("/v1/openapi.json")).json()
        told = document["paths"]["/v1/sessions/{session_id}"]["delete"]
        assert "Idempotency-Key" not in [parameter["name"] for parameter in told["parameters"]]
        assert "422" not in told["responses"]

    async def test_another_persons_sessions_are_not_found_even_by_an_owner(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        member = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        owner = await joined(databases, caller, Role.OWNER, pepper=pepper)
        async with browser(gateway) as theirs, browser(gateway) as http:
            for each, person in ((theirs, member), (http, owner)):
                await sign_in(each, person.email)
                each.headers["X-Recollect-Tenant"] = caller.tenant
            (foreign,) = await everything(theirs, "/v1/sessions", 50)
            assert foreign["id"] not in [session["id"] for session in await everything(http, "/v1/sessions", 50)]
            problem(await http.delete(f"/v1/sessions/{foreign['id']}"), 404, "session_not_found")
            assert (await theirs.get("/v1/sessions")).status_code == 200

    async def test_a_key_has_no_sessions_whatever_the_cookie(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes, admin_key: str
    ) -> None:
        person = await joined(databases, caller, Role.OWNER, pepper=pepper)
        async with browser(gateway) as http:
            await sign_in(http, person.email)
            http.headers["X-Recollect-Tenant"] = caller.tenant
            (own,) = await everything(http, "/v1/sessions", 50)
            http.headers["Authorization"] = f"Bearer {admin_key}"
            assert await everything(http, "/v1/sessions", 50) == []
            problem(await http.delete(f"/v1/sessions/{own['id']}"), 404, "session_not_found")
