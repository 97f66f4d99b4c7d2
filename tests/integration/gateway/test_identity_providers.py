"""/v1/identity-providers: who may configure them, what is returned, and what is refused."""

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import browser, joined, sign_in

PATH = "/v1/identity-providers"
NEW = {
    "name": "Acme Login",
    "issuer": "https://login.example.com",
    "client_id": "recollect",
    "client_secret": "the-secret-of-acme",
}


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as client:
        yield client


@pytest.fixture
async def other(gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant) -> AsyncIterator[httpx2.AsyncClient]:
    """Another tenant's admin."""
    issued = await issue(operator_caller(await new_tenant()), kind="admin")
    async with gateway.http(issued.secret) as client:
        yield client


async def test_a_provider_is_created_changed_and_deleted(http: httpx2.AsyncClient, gateway: RunningGateway) -> None:
    made = await done(http, "POST", PATH, **NEW)
    assert made["redirect_uri"] == f"{gateway.url}/sign-in/callback/{made['id']}"
    assert (made["algorithm"], made["disabled_at"]) == ("RS256", None)
    changed = await done(http, "PATCH", f"{PATH}/{made['id']}", name="Acme", algorithm="ES256", enabled=False)
    assert (changed["name"], changed["algorithm"], changed["client_id"]) == ("Acme", "ES256", "recollect")
    assert changed["disabled_at"] is not None
    assert (await done(http, "PATCH", f"{PATH}/{made['id']}", enabled=True))["disabled_at"] is None
    assert [each["id"] for each in (await done(http, "GET", PATH))["items"]] == [made["id"]]
    assert (await http.delete(f"{PATH}/{made['id']}")).status_code == 204
    assert (await done(http, "GET", PATH))["items"] == []


@pytest.mark.proves("security: client-secrets")
async def test_the_client_secret_is_never_returned_and_stored_encrypted(
    http: httpx2.AsyncClient, owner: asyncpg.Connection
) -> None:
    made = await done(http, "POST", PATH, **NEW)
    told = str(made) + (await http.get(PATH)).text + (await http.patch(f"{PATH}/{made['id']}", json={})).text
    assert NEW["client_secret"] not in told
    rows = await owner.fetch("SELECT * FROM identity_providers WHERE id = $1", made["id"])
    assert len(rows) == 1
    assert NEW["client_secret"].encode() not in bytes(rows[0]["client_secret"])
    assert NEW["client_secret"] not in str(dict(rows[0]))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("issuer", "http://login.example.com"),
        ("issuer", "https://login.example.com/?a=b"),
        ("issuer", "https://user@login.example.com"),
        ("issuer", "file:///etc/passwd"),
        ("issuer", "https://"),
        ("issuer", "https://login.example.com:22"),
        ("issuer", ""),
        ("issuer", "x" * 3000),
        ("name", ""),
        ("name", "a\tb"),
        ("client_id", "two words"),
        ("client_secret", "a\nb"),
        ("client_secret", ""),
        ("algorithm", "HS256"),
        ("algorithm", "none"),
        ("algorithm", ""),
    ],
)
async def test_an_invalid_provider_is_refused_with_its_path(http: httpx2.AsyncClient, path: str, value: str) -> None:
    assert problem(await http.post(PATH, json={**NEW, path: value}), 400)["path"] == path
    assert (await done(http, "GET", PATH))["items"] == []


async def test_providers_are_limited_in_number_and_unique_by_issuer(http: httpx2.AsyncClient) -> None:
    await done(http, "POST", PATH, **NEW)
    problem(await http.post(PATH, json=NEW), 409, "provider_exists")
    for number in range(4):
        await done(http, "POST", PATH, **{**NEW, "issuer": f"https://login{number}.example.com"})
    problem(await http.post(PATH, json={**NEW, "issuer": "https://more.example.com"}), 409, "too_many_providers")


async def test_another_tenant_cannot_reach_a_provider(http: httpx2.AsyncClient, other: httpx2.AsyncClient) -> None:
    made = await done(http, "POST", PATH, **NEW)
    for method, body in (("PATCH", {"enabled": False}), ("DELETE", None)):
        strange = await other.request(method, f"{PATH}/{made['id']}", json=body)
        missing = await other.request(method, f"{PATH}/{uuid4()}", json=body)
        assert (strange.status_code, strange.content) == (missing.status_code, missing.content)
        problem(strange, 404, "provider_not_found")
    assert (await done(other, "GET", PATH))["items"] == []
    assert (await done(http, "GET", PATH))["items"][0]["disabled_at"] is None


@pytest.mark.parametrize(
    ("role", "status"), [(Role.READER, 403), (Role.MEMBER, 403), (Role.ADMIN, 200), (Role.OWNER, 200)]
)
async def test_only_admins_and_owners_manage_providers(
    gateway: RunningGateway, databases: Databases, caller: Caller, settings: Settings, role: Role, status: int
) -> None:
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(databases, caller, role, pepper=pepper)
    async with browser(gateway) as client:
        await sign_in(client, person.email)
        client.headers["X-Recollect-Tenant"] = caller.tenant
        assert (await client.get(PATH)).status_code == status
        assert (await client.post(PATH, json=NEW)).status_code == (201 if status == 200 else 403)


async def test_a_key_without_the_scope_cannot_manage_providers(gateway: RunningGateway, key: str) -> None:
    async with gateway.http(key) as client:
        assert (await client.get(PATH)).status_code == 403
        assert (await client.post(PATH, json=NEW)).status_code == 403
