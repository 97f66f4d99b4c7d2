"""The audit log over HTTP: it is isolated by tenant, and only admins read it."""

import json
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import ROLE_SCOPES, Caller, Role, Scope
from recollect.cells.databases import Databases
from recollect.settings import Settings
from recollect_gateway.callers.browser_sessions import TENANT_HEADER
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import browser, joined, sign_in, submit


@pytest.mark.proves("security: audit-readers")
async def test_a_tenant_reads_only_its_own_entries(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant
) -> None:
    other = operator_caller(await new_tenant())
    mine, theirs = await issue(caller, kind="admin"), await issue(other, kind="admin")
    async with gateway.http(theirs.secret) as http:
        made = (await http.post("/v1/keys", json={"name": "laptop"})).json()
        their_entries = (await http.get("/v1/audit")).json()["items"]
    assert {each["actor"] for each in their_entries} == {"operator", f"key:{theirs.key.id}"}
    async with gateway.http(mine.secret) as http:
        listed = (await http.get("/v1/audit")).json()["items"]
        assert not {each["id"] for each in listed} & {each["id"] for each in their_entries}
        for foreign, unknown in (
            ({"object": f"key:{made['id']}"}, {"object": f"key:{uuid4()}"}),
            ({"actor": f"key:{theirs.key.id}"}, {"actor": f"key:{uuid4()}"}),
        ):
            answers = [await http.get("/v1/audit", params=params) for params in (foreign, unknown)]
            assert answers[0].content == answers[1].content == b'{"items":[],"next_cursor":null}'
        beyond = (await http.get("/v1/audit", params={"cursor": their_entries[0]["id"]})).json()["items"]
        assert beyond == listed  # A cursor is a place in time, and shows nothing of who stands there.
        exported = (await http.get("/v1/audit/export")).text
    assert str(theirs.key.id) not in exported
    assert made["id"] not in exported


async def test_pages_are_newest_first_and_the_export_has_every_entry(gateway: RunningGateway, admin_key: str) -> None:
    async with gateway.http(admin_key) as http:
        for number in range(5):
            assert (await http.post("/v1/keys", json={"name": f"{number}"})).is_success
        listed, cursor = [], None
        while True:
            page = (await http.get("/v1/audit", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
            listed += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        answer = await http.get("/v1/audit/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    exported = [json.loads(line) for line in answer.text.splitlines()]
    assert exported[0]["action"] == "audit.exported"
    assert exported[1:] == listed
    assert [each["at"] for each in listed] == sorted((each["at"] for each in listed), reverse=True)
    assert {each["address"] for each in listed if each["actor"].startswith("key:")} == {"127.0.0.1"}


@pytest.mark.proves("security: audit-readers")
@pytest.mark.parametrize("path", ["/v1/audit", "/v1/audit/export"])
async def test_only_admins_read_the_audit_log(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, databases: Databases, settings: Settings, path: str
) -> None:
    async with gateway.http((await issue(caller)).secret) as http:
        refused = await http.get(path)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_required")
    pepper = settings.key_secret.get_secret_value().encode()
    for role in Role:
        person = await joined(databases, caller, role, pepper=pepper)
        async with browser(gateway) as http:
            await sign_in(http, person.email)
            answer = await http.get(path, headers={TENANT_HEADER: caller.tenant})
        assert answer.status_code == (200 if Scope.TENANT_ADMIN in ROLE_SCOPES[role] else 403), role


@pytest.mark.parametrize(
    "query", ["since=2026-01-01T00:00:00", "until=x", "action=nothing", "cursor=x", "actor=%00", "limit=0"]
)
async def test_an_invalid_query_is_refused(gateway: RunningGateway, admin_key: str, query: str) -> None:
    async with gateway.http(admin_key) as http:
        for path in ("/v1/audit", "/v1/audit/export"):
            if path == "/v1/audit" or not query.startswith(("cursor", "limit")):
                assert (await http.get(f"{path}?{query}")).status_code == 400, query


async def test_sign_ins_leave_entries_with_the_client_address(
    gateway: RunningGateway, caller: Caller, databases: Databases, settings: Settings, owner: asyncpg.Connection
) -> None:
    person = await joined(databases, caller, Role.MEMBER, pepper=settings.key_secret.get_secret_value().encode())
    async with browser(gateway) as http:
        assert (await sign_in(http, person.email, "not this one")).status_code == 401
        assert (await sign_in(http, person.email)).status_code == 303
        await submit(http, "/account", "/sign-out")
    found = await owner.fetch(
        "SELECT action, address FROM audit_log WHERE tenant_id = $1 AND action LIKE 'session.%'", caller.tenant_id
    )
    assert sorted(tuple(row) for row in found) == [
        (f"session.{act}", "127.0.0.1") for act in ("ended", "refused", "started")
    ]
