"""Rotation and reporting of keys over real HTTP."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


async def holds(gateway: RunningGateway, secret: str) -> bool:
    async with gateway.http(secret) as http:
        return (await http.get("/v1/graphs")).status_code == 200


async def made(admin: httpx2.AsyncClient, **fields: Any) -> Any:
    return await done(admin, "POST", "/v1/keys", name="laptop", **fields)


class TestRotation:
    async def test_the_new_key_has_the_rights_of_the_old_one_and_both_are_valid_for_a_while(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient
    ) -> None:
        old = await made(
            admin, scopes=["memory:read"], graphs=["default"], toolsets=["facts", "lineage"], requests_per_minute=100
        )
        new = await done(admin, "POST", f"/v1/keys/{old['id']}/rotate", overlap_hours=1)
        its_own = {"id", "hint", "secret", "created_at", "last_used_at"}
        assert {k: v for k, v in new.items() if k not in its_own} == {k: v for k, v in old.items() if k not in its_own}
        assert new["id"] != old["id"]
        assert await holds(gateway, new["secret"])
        assert await holds(gateway, old["secret"])
        (listed,) = [each for each in (await done(admin, "GET", "/v1/keys"))["items"] if each["id"] == old["id"]]
        assert listed["expires_at"] is not None

    async def test_without_an_overlap_the_old_key_is_void_at_once(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient
    ) -> None:
        old = await made(admin)
        new = await done(admin, "POST", f"/v1/keys/{old['id']}/rotate", overlap_hours=0)
        assert (await holds(gateway, new["secret"]), await holds(gateway, old["secret"])) == (True, False)
        problem(await admin.post(f"/v1/keys/{old['id']}/rotate", json={}), 409, "key_void")

    async def test_rotation_never_postpones_an_expiry(
        self, admin: httpx2.AsyncClient, owner: asyncpg.Connection
    ) -> None:
        old = await made(admin, expires_at="2100-01-01T00:00:00Z")
        await owner.execute("UPDATE api_keys SET expires_at = now() + interval '1 hour' WHERE hint = $1", old["hint"])
        new = await done(admin, "POST", f"/v1/keys/{old['id']}/rotate", overlap_hours=720)
        soon = "SELECT bool_and(expires_at < now() + interval '2 hours') FROM api_keys WHERE id = ANY ($1::uuid[])"
        assert await owner.fetchval(soon, [old["id"], new["id"]])

    @pytest.mark.parametrize("hours", [-1, 721, "x", None])
    async def test_the_overlap_is_limited(self, admin: httpx2.AsyncClient, hours: Any) -> None:
        old = await made(admin)
        problem(await admin.post(f"/v1/keys/{old['id']}/rotate", json={"overlap_hours": hours}), 400)

    async def test_a_key_with_more_rights_cannot_be_rotated(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient
    ) -> None:
        far = await made(admin)
        near = await made(admin, kind="admin", toolsets=["admin"])
        async with gateway.http(near["secret"]) as http:
            problem(await http.post(f"/v1/keys/{far['id']}/rotate", json={}), 403, "toolset_not_allowed")
        assert await holds(gateway, far["secret"])

    async def test_another_tenants_key_is_not_found(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        other = await issue(operator_caller(await new_tenant()), kind="agent")
        strange = await admin.post(f"/v1/keys/{other.key.id}/rotate", json={"overlap_hours": 0})
        missing = await admin.post(f"/v1/keys/{uuid4()}/rotate", json={"overlap_hours": 0})
        assert (strange.status_code, strange.content) == (missing.status_code, missing.content)
        problem(strange, 404, "key_not_found")
        assert await holds(gateway, other.secret)


class TestReport:
    @pytest.mark.proves("security: reported-keys")
    async def test_a_reported_key_is_void(self, gateway: RunningGateway, admin: httpx2.AsyncClient) -> None:
        leaked, kept = await made(admin), await made(admin)
        async with gateway.http() as http:
            assert (await http.post("/v1/keys/report", json={"key": leaked["secret"]})).status_code == 204
        assert (await holds(gateway, leaked["secret"]), await holds(gateway, kept["secret"])) == (False, True)

    @pytest.mark.proves("security: reported-keys")
    async def test_the_answer_to_a_report_does_not_tell_whether_the_key_existed(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient
    ) -> None:
        real = await made(admin)
        async with gateway.http() as http:
            answers = [
                await http.post("/v1/keys/report", json={"key": key})
                for key in (real["secret"], real["secret"], real["secret"][:-1], "rcl_agent_x", "", real["hint"])
            ]
        assert {(answer.status_code, answer.content) for answer in answers} == {(204, b"")}

    async def test_only_a_small_body_is_read(self, gateway: RunningGateway, caller: Caller) -> None:
        async with gateway.http() as http:
            problem(await http.post("/v1/keys/report", json={"key": "x" * 5_000}), 413, "request_too_large")
            problem(await http.post("/v1/keys/report", json={"key": 1}), 400)
            problem(await http.post("/v1/keys/report", json={}), 400)
