"""The operator API over HTTP: managing tenants and plans, and who may not use it."""

import hashlib
import itertools
import json
from datetime import timedelta
from secrets import token_hex
from typing import Any
from uuid import UUID

import asyncpg
import httpx2
import pytest
from pydantic import SecretStr

from recollect.accounts.identity.model import generate_secret
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_keys.model import KIND
from recollect.accounts.tenants.model import Tenant
from recollect.errors import InvalidInput
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_http.openapi.parameters import handlers_of
from recollect_operator.app import create_app
from recollect_operator.server import served_settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers, serving
from tests.support.people import new_email
from tests.support.timeouts import MAX_WAIT_SECONDS

_serial = itertools.count(1)


def new_slug(*, first: bool = False) -> str:
    """A slug that nobody has; `first`: before those of other tests."""
    return f"{'0-' if first else ''}operated-{next(_serial)}"


async def done(http: httpx2.AsyncClient, method: str, path: str, body: Any = None, **more: Any) -> Any:
    answer = await http.request(method, path, json=body, **more)
    assert answer.is_success, (answer.status_code, answer.text)
    return answer.json()


async def listed_in_pages(operating: httpx2.AsyncClient, slugs: set[str]) -> list[dict[str, Any]]:
    """All tenants, as listed: two on a page until these are found, then many, because other tests made thousands."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        limit = 200 if slugs <= {tenant["slug"] for tenant in found} else 2
        page = await done(operating, "GET", "/tenants", params={"limit": limit} | cursor)
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def code_of(http: httpx2.AsyncClient, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str]:
    answer = await http.request(method, path, json=body, **more)
    return answer.status_code, answer.json()["code"]


class TestTenants:
    async def test_a_tenant_is_created_with_valid_first_credentials(
        self, operating: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        slug = new_slug()
        email = new_email()
        asked = {"slug": slug, "plan": "team", "owner_email": email, "admin_key": "first"}
        made = await done(operating, "POST", "/tenants", asked)
        assert (made["name"], made["status"], made["plan"], made["erase_at"]) == (slug, "active", "team", None)
        async with gateway.http(made["admin_key"]) as http:
            assert [graph["name"] for graph in (await done(http, "GET", "/v1/graphs"))["items"]] == ["default"]
            [invited] = (await done(http, "GET", "/v1/invitations"))["items"]
            assert (invited["email"], invited["role"]) == (email, "owner")
            assert (await http.get("/join/" + made["invitation_link"].rpartition("/")[2])).status_code == 200
            told = [(e["action"], e["actor"]) for e in (await done(http, "GET", "/v1/audit"))["items"]]
        assert told == [("key.created", "operator"), ("member.invited", "operator"), ("tenant.created", "operator")]
        assert await code_of(operating, "POST", "/tenants", asked) == (409, "tenant_exists")

    async def test_a_failed_creation_leaves_nothing(self, operating: httpx2.AsyncClient) -> None:
        slug = new_slug()
        asked = {"slug": slug, "admin_key": "a\tkey", "owner_email": "ada@example.com"}
        assert await code_of(operating, "POST", "/tenants", asked) == (400, "invalid_input")
        assert await code_of(operating, "GET", f"/tenants/{slug}") == (404, "tenant_not_found")

    async def test_tenants_are_listed_in_pages(self, operating: httpx2.AsyncClient, new_tenant: NewTenant) -> None:
        slugs = {new_slug(first=True) for _ in range(5)}
        for slug in slugs:
            await done(operating, "POST", "/tenants", {"slug": slug})
        last = (await new_tenant()).slug
        found = [tenant["slug"] for tenant in await listed_in_pages(operating, slugs)]
        assert slugs | {last} <= set(found)
        assert found == sorted(set(found))

    async def test_requests_for_deletion_are_listed_and_filtered_by(
        self, operating: httpx2.AsyncClient, new_tenant: NewTenant, owner: asyncpg.Connection
    ) -> None:
        asked, quiet = (await new_tenant()), (await new_tenant())
        await owner.execute(
            "INSERT INTO deletion_requests (tenant_id, requested_by) VALUES ($1, gen_random_uuid())", asked.id
        )

        async def listed(**query: str) -> dict[str, str | None]:
            answer = await operating.get("/tenants", params={"limit": "200", **query})
            return {each["slug"]: each["deletion_due_at"] for each in answer.json()["items"]}

        found = await listed(deletion_requested="true", search=asked.slug)
        assert found[asked.slug] is not None
        assert (await listed(search=quiet.slug))[quiet.slug] is None
        assert asked.slug not in await listed(deletion_requested="false", search=asked.slug)
        restored = (await operating.post(f"/tenants/{asked.slug}/restore")).json()
        assert restored["deletion_due_at"] is None

    async def test_the_gateway_applies_each_kind_of_suspension(
        self, operating: httpx2.AsyncClient, tenant: Tenant, gateway: RunningGateway, admin_key: str
    ) -> None:
        path = f"/tenants/{tenant.slug}/suspension"
        async with gateway.http(admin_key) as http:
            for kind, status, read, written in (
                ("read_only", "read_only", 200, (403, "tenant_read_only")),
                ("whole", "suspended", 401, (401, "unauthenticated")),
            ):
                assert (await done(operating, "PUT", path, {"kind": kind}))["status"] == status
                assert (await http.get("/v1/graphs")).status_code == read
                assert await code_of(http, "POST", "/v1/graphs", {"name": "new"}) == written
            assert (await done(operating, "DELETE", path))["status"] == "active"
            assert (await http.post("/v1/graphs", json={"name": "new"})).status_code == 201

    async def test_a_conditional_change_requires_the_tenant_to_be_unchanged(
        self, operating: httpx2.AsyncClient, tenant: Tenant
    ) -> None:
        path = f"/tenants/{tenant.slug}"
        tag = (await operating.get(path)).headers["etag"]
        assert (await operating.get(path, headers={"If-None-Match": tag})).status_code == 304
        as_read = {"headers": {"If-Match": tag}}
        assert (await done(operating, "PUT", f"{path}/plan", {"plan": "free"}, **as_read))["plan"] == "free"
        changing: list[tuple[str, str, Any]] = [
            ("PUT", "/plan", {"plan": "team"}),
            ("PUT", "/suspension", {"kind": "whole"}),
        ]
        changing += [("DELETE", "/suspension", None), ("DELETE", "", None), ("POST", "/restore", None)]
        for method, more, body in changing:
            assert await code_of(operating, method, path + more, body, **as_read) == (412, "precondition_failed")

    async def test_a_tenant_is_deleted_with_grace_and_restored(
        self, operating: httpx2.AsyncClient, tenant: Tenant, gateway: RunningGateway, admin_key: str
    ) -> None:
        path = f"/tenants/{tenant.slug}"
        deleted = await operating.delete(path)
        assert (deleted.status_code, deleted.json()["status"]) == (202, "deleted")
        async with gateway.http(admin_key) as http:
            assert (await http.get("/v1/graphs")).status_code == 401
            assert await code_of(operating, "DELETE", f"{path}/suspension") == (409, "tenant_deleted")
            assert await code_of(operating, "POST", f"/erasures/{tenant.id}") == (409, "tenant_not_deleted")
            assert (await done(operating, "POST", f"{path}/restore"))["status"] == "active"
            assert (await http.get("/v1/graphs")).status_code == 200
        assert await code_of(operating, "DELETE", path, params={"grace_days": 366}) == (400, "invalid_input")

    async def test_erasure_without_grace_requires_a_confirmation(
        self, operating: httpx2.AsyncClient, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        path, now = f"/tenants/{tenant.slug}", {"grace_days": 0}
        for without_grace in (now, {"grace_days": 1e-12}):
            for confirm in ({}, {"confirm": "another"}):
                refused = await code_of(operating, "DELETE", path, params=without_grace | confirm)
                assert refused == (400, "invalid_input")
        rows = (await done(operating, "GET", f"{path}/rows"))["rows"]
        await done(operating, "DELETE", path, params=now | {"confirm": tenant.slug})
        erased = {"state": "more", "receipt": None}
        while erased["state"] != "erased":
            erased = await done(operating, "POST", f"/erasures/{tenant.id}")
        [receipt] = (await done(operating, "GET", "/receipts", params={"slug": tenant.slug}))["items"]
        assert receipt == erased["receipt"] == await done(operating, "GET", f"/receipts/{receipt['id']}")
        assert receipt["rows"] == rows == json.loads(receipt["content"])["rows"]
        assert hashlib.sha256(receipt["content"].encode()).hexdigest() == receipt["sha256"]
        assert await owner.fetchval("SELECT count(*) FROM graphs WHERE tenant_id = $1", tenant.id) == 0
        told = (await done(operating, "GET", "/log", params={"subject": f"tenant:{tenant.slug}"}))["items"]
        assert [entry["action"] for entry in told] == ["tenant.erased", "tenant.deleted", "tenant.created"]
        assert told[1]["actor"].startswith("operator_key:")
        assert told[1]["address"] == "127.0.0.1"


async def test_plans_are_created_and_changed(operating: httpx2.AsyncClient) -> None:
    made = await done(operating, "PUT", "/plans/of-the-api", {"graphs": 2, "stored_bytes": 1000})
    assert (made["graphs"], made["observations"]) == (2, None)
    changed = await done(operating, "PUT", "/plans/of-the-api", {"graphs": None})
    assert (changed["graphs"], changed["stored_bytes"]) == (None, 1000)
    assert changed in (await done(operating, "GET", "/plans"))["items"]
    assert await code_of(operating, "PUT", "/plans/of-the-api", {"graphs": 0}) == (400, "invalid_input")
    assert await code_of(operating, "PUT", "/plans/of-the-api", {"graph": 1}) == (400, "invalid_input")
    [entry] = (await done(operating, "GET", "/log", params={"subject": "plan:of-the-api", "limit": 1}))["items"]
    assert (entry["action"], entry["details"]) == ("plan.set", {"limits": {"graphs": None}})


async def test_blank_names_are_refused(operating: httpx2.AsyncClient, operator: Operator) -> None:
    for blank in ("name", "admin_key"):
        slug = new_slug()
        refused = await operating.post("/tenants", json={"slug": slug, blank: "  "})
        assert (refused.status_code, refused.json()["path"]) == (400, blank)
        assert await code_of(operating, "GET", f"/tenants/{slug}") == (404, "tenant_not_found")
    with pytest.raises(InvalidInput, match="name"):
        await operator_keys.create_key(operator, " ", lifetime=timedelta(hours=1), pepper=b"pepper")


async def test_options_returns_the_methods_of_each_path(operating: httpx2.AsyncClient) -> None:
    document = await done(operating, "GET", "/openapi.json")
    for path, operations in document["paths"].items():
        filled = path.format(slug="nobody", name="free", tenant_id=UUID(int=1), receipt_id=UUID(int=1))
        told = await operating.options(filled.removeprefix("/operator/v1"))
        assert told.status_code in (204, 404), path  # If it is about a tenant, the tenant is looked up first.
        if told.is_success:
            assert set(told.headers["Allow"].split(", ")) == {method.upper() for method in operations} | {"OPTIONS"}


class TestCredentials:
    @pytest.mark.proves("security: operator-routes")
    async def test_no_route_answers_without_an_operators_key(
        self,
        operator_api: RunningGateway,
        operator: Operator,
        operator_key: str,
        settings: Settings,
        admin_key: str,
        operator_settings: Settings,
    ) -> None:
        """A tenant's key and unknown, expired and revoked keys look alike."""
        pepper = settings.key_secret.get_secret_value().encode()
        key, revoked = await operator_keys.create_key(operator, "revoked", lifetime=timedelta(days=1), pepper=pepper)
        await operator_keys.revoke_key(operator, key.id)
        _, over = await operator_keys.create_key(operator, "over", lifetime=timedelta(microseconds=1), pepper=pepper)
        unknown, last = generate_secret(KIND), operator_key[-1]
        mistyped = operator_key[:-1] + ("0" if last != "0" else "1")
        routes = [
            (name.partition(" ")[0], name.partition(" ")[2])
            for name, _ in handlers_of(create_app(operator_settings))
            if "/operator/v1/" in name and "openapi" not in name and not name.startswith("OPTIONS")
        ]
        assert len(routes) == 17
        told = set()
        for method, path in routes:
            filled = path.format(slug="nobody", name="free", tenant_id=key.id, receipt_id=key.id)
            for secret in (None, admin_key, unknown, over, revoked, mistyped):
                async with operator_api.http(secret) as http:
                    answer = await http.request(method, filled)
                assert answer.status_code == 401, (method, path, secret)
                told.add((answer.text, answer.headers["www-authenticate"]))
        assert len(told) == 1

    @pytest.mark.proves("security: operator-routes")
    async def test_an_operators_key_is_not_valid_at_the_gateway(
        self, gateway: RunningGateway, operator_key: str, tenant: Tenant
    ) -> None:
        """It looks like an unknown key."""
        unknown = generate_secret(KIND)
        for path in ("/v1/graphs", "/v1/tenant", f"/t/{tenant.slug}/mcp", "/mcp", "/operator/v1/tenants"):
            told = set()
            for secret in (operator_key, unknown):
                async with gateway.http(secret, **rpc_headers()) as http:
                    answer = await (http.get(path) if path.startswith("/v1") else http.post(path, content="{}"))
                told.add((answer.status_code, answer.text))
            assert len(told) == 1, told
            assert told.pop()[0] in (401, 404, 405)

    @pytest.mark.proves("security: guessed-operator-keys")
    async def test_invented_keys_are_throttled_and_valid_keys_are_not(
        self, operator_settings: Settings, operator: Operator
    ) -> None:
        """With a secret of its own, so that invented keys of other tests are counted separately."""
        secret = SecretStr(token_hex())
        few = {"failed_keys_per_minute": 3, "key_secret": secret, "rate_limit_wait_seconds": MAX_WAIT_SECONDS}
        narrow, pepper = operator_settings.model_copy(update=few), secret.get_secret_value().encode()
        _, operator_key = await operator_keys.create_key(operator, "t", lifetime=timedelta(hours=1), pepper=pepper)
        with serving(narrow, create_app(narrow)) as api:
            async with api.http(operator_key) as http:
                assert (await http.get("/operator/v1/plans")).status_code == 200
                statuses = []
                for _ in range(6):
                    made_up = {"Authorization": f"Bearer {generate_secret(KIND)}"}
                    statuses.append((await http.get("/operator/v1/plans", headers=made_up)).status_code)
                assert statuses[0] == 401
                assert statuses[-1] == 429
                assert (await http.get("/operator/v1/plans")).status_code == 200


async def test_invalid_input_is_refused_with_its_path(operating: httpx2.AsyncClient, issue: NewApiKey) -> None:
    for body, path in (({"slug": "UPPER"}, "slug"), ({"slug": 1}, "slug"), ({"slug": "a", "more": 1}, "more")):
        answer = await operating.post("/tenants", json=body)
        assert (answer.status_code, answer.json()["path"]) == (400, path), answer.text
    assert (await operating.get("/tenants", params={"limits": 1})).status_code == 400
    assert (await operating.get("/log", params={"cursor": "x"})).status_code == 400
    assert (await operating.post("/tenants", content="{" * 70_000)).status_code == 413


def test_the_api_listens_on_loopback_by_default(settings: Settings) -> None:
    public = settings.model_copy(update={"host": "0.0.0.0", "public_url": "https://memory.example.com"})
    listening = served_settings(public)
    assert (listening.host, listening.port, listening.base_url) == ("127.0.0.1", 8788, "http://127.0.0.1:8788")
