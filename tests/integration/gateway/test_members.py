"""/v1/members and /v1/invitations, and calls of /v1 by a signed-in browser."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.people.model import Person
from recollect.accounts.plans import service as plans
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.people import PASSWORD, browser, joined, new_email, sign_in, submit
from tests.support.timeouts import MAX_WAIT_SECONDS


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(gateway) as client:
        yield client


@pytest.fixture
async def other(gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant) -> AsyncIterator[httpx2.AsyncClient]:
    """Another tenant's admin."""
    issued = await issue(operator_caller(await new_tenant()), kind="admin")
    async with gateway.http(issued.secret) as client:
        yield client


async def signed_in_as(
    http: httpx2.AsyncClient, databases: Databases, caller: Caller, role: Role, pepper: bytes
) -> Person:
    """A new member who is signed in in this browser, which calls as a member of the tenant."""
    person = await joined(databases, caller, role, pepper=pepper)
    assert (await sign_in(http, person.email)).status_code == 303
    http.headers["X-Recollect-Tenant"] = caller.tenant
    return person


class TestMembers:
    async def test_an_owner_invites_and_whoever_joins_is_listed(
        self, http: httpx2.AsyncClient, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        owner = await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        email = new_email()
        invited = await done(http, "POST", "/v1/invitations", email=email.upper(), role="admin")
        assert (invited["email"], invited["role"], invited["created_by"]) == (email, "admin", f"person:{owner.id}")
        async with browser(gateway) as theirs:
            await submit(theirs, "/join/" + invited["link"].rpartition("/")[2], name="Grace", password=PASSWORD)
        listed = (await done(http, "GET", "/v1/members"))["items"]
        assert {(each["email"], each["role"]) for each in listed} == {(owner.email, "owner"), (email, "admin")}
        (accepted,) = [
            each for each in (await done(http, "GET", "/v1/invitations"))["items"] if each["id"] == invited["id"]
        ]
        assert accepted["accepted_at"] is not None
        assert "link" not in accepted

    async def test_roles_are_changed_and_members_removed(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        owner = await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        member = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        assert (await done(http, "PATCH", f"/v1/members/{member.id}", role="reader"))["role"] == "reader"
        problem(await http.patch(f"/v1/members/{member.id}", json={"role": "king"}), 400)
        problem(await http.patch(f"/v1/members/{uuid4()}", json={"role": "reader"}), 404, "member_not_found")
        assert (await http.delete(f"/v1/members/{member.id}")).status_code == 204
        problem(await http.delete(f"/v1/members/{member.id}"), 404, "member_not_found")
        problem(await http.delete(f"/v1/members/{owner.id}"), 409, "last_owner")
        problem(await http.patch(f"/v1/members/{owner.id}", json={"role": "admin"}), 409, "last_owner")

    async def test_a_revoked_invitation_is_invalid(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        invited = await done(http, "POST", "/v1/invitations", email=new_email())
        assert (await done(http, "DELETE", f"/v1/invitations/{invited['id']}"))["revoked_at"] is not None
        assert (await http.get("/join/" + invited["link"].rpartition("/")[2])).status_code == 404
        problem(await http.delete(f"/v1/invitations/{uuid4()}"), 404, "invitation_not_found")

    @pytest.mark.parametrize("email", ["", "nobody", "a@b@c", "x" * 300, "a\tb@example.com"])
    async def test_only_valid_addresses_can_be_invited(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes, email: str
    ) -> None:
        await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        assert problem(await http.post("/v1/invitations", json={"email": email}), 400)["path"] == "email"

    async def test_another_tenant_cannot_reach_members_and_invitations(
        self, http: httpx2.AsyncClient, other: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        owner = await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        invited = await done(http, "POST", "/v1/invitations", email=new_email())
        for method, path, body in (
            ("PATCH", f"/v1/members/{owner.id}", {"role": "reader"}),
            ("DELETE", f"/v1/members/{owner.id}", None),
            ("DELETE", f"/v1/invitations/{invited['id']}", None),
        ):
            strange = await other.request(method, path, json=body)
            missing = await other.request(method, path.rpartition("/")[0] + f"/{uuid4()}", json=body)
            assert (strange.status_code, strange.content) == (missing.status_code, missing.content)
            assert strange.status_code == 404
        assert (await done(other, "GET", "/v1/members"))["items"] == []
        assert (await done(other, "GET", "/v1/invitations"))["items"] == []


ALL = ("memory:read", "memory:write", "tenant:admin")


class TestConfinedKeys:
    """A member has all rights of the role. So a key with fewer rights, or one that expires, cannot let anybody in."""

    @pytest.mark.proves("security: confined-keys-admit-nobody")
    @pytest.mark.parametrize(
        ("confined", "code"),
        [
            ({"graphs": ["mine"], "scopes": ALL}, "graph_not_allowed"),
            ({"toolsets": ["admin"], "scopes": ALL}, "toolset_not_allowed"),
            ({"scopes": ["tenant:admin"]}, "scope_required"),
            ({"scopes": ALL, "expires_at": "2100-01-01T00:00:00Z"}, "expiry_exceeded"),
        ],
        ids=["graphs", "toolsets", "scopes", "end"],
    )
    async def test_a_confined_key_cannot_let_anybody_in(
        self,
        gateway: RunningGateway,
        databases: Databases,
        caller: Caller,
        pepper: bytes,
        admin_key: str,
        confined: dict[str, object],
        code: str,
    ) -> None:
        reader = await joined(databases, caller, Role.READER, pepper=pepper)
        provider = {"name": "P", "issuer": "https://login.example.com", "client_id": "c", "client_secret": "s" * 20}
        async with gateway.http(admin_key) as admin:
            await done(admin, "POST", "/v1/graphs", name="mine")
            domain = await done(admin, "POST", "/v1/email-domains", domain="example.com", role="reader")
            set_up = await done(admin, "POST", "/v1/identity-providers", **provider)
            made = await done(admin, "POST", "/v1/keys", name="confined", kind="admin", **confined)
        async with gateway.http(made["secret"]) as http:
            for method, path, body in (
                ("POST", "/v1/invitations", {"email": new_email(), "role": "admin"}),
                ("POST", "/v1/invitations", {"email": new_email(), "role": "reader"}),
                ("PATCH", f"/v1/members/{reader.id}", {"role": "admin"}),
                ("POST", "/v1/email-domains", {"domain": "example.org", "role": "reader"}),
                ("POST", f"/v1/email-domains/{domain['id']}/verify", {}),
                ("PATCH", f"/v1/email-domains/{domain['id']}", {"role": "member"}),
                ("POST", "/v1/identity-providers", {**provider, "issuer": "https://login.example.org"}),
                ("PATCH", f"/v1/identity-providers/{set_up['id']}", {"client_id": "d"}),
            ):
                refused = await http.request(method, path, json=body)
                assert (refused.status_code, refused.json()["code"]) == (403, code), (method, path)
        async with gateway.http(admin_key) as admin:
            invited = (await done(admin, "GET", "/v1/invitations"))["items"]
            assert [each["email"] for each in invited] == [reader.email]
            assert len((await done(admin, "GET", "/v1/email-domains"))["items"]) == 1

    async def test_a_confined_key_can_lower_roles_and_remove_members(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes, admin_key: str
    ) -> None:
        member = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        async with gateway.http(admin_key) as admin:
            made = await done(admin, "POST", "/v1/keys", name="ends", kind="admin", expires_at="2100-01-01T00:00:00Z")
        async with gateway.http(made["secret"]) as http:
            assert (await done(http, "PATCH", f"/v1/members/{member.id}", role="reader"))["role"] == "reader"
            assert (await http.delete(f"/v1/members/{member.id}")).status_code == 204

    @pytest.mark.proves("security: confined-keys-admit-nobody")
    async def test_a_key_confined_to_graphs_cannot_change_the_tenant(
        self, gateway: RunningGateway, admin_key: str
    ) -> None:
        async with gateway.http(admin_key) as admin:
            await done(admin, "POST", "/v1/graphs", name="mine")
            made = await done(admin, "POST", "/v1/keys", name="confined", kind="admin", graphs=["mine"])
            tag = (await admin.get("/v1/tenant")).headers["ETag"]
            async with gateway.http(made["secret"]) as http:
                change = {"settings": {"retention_days": 1}}
                problem(
                    await http.patch("/v1/tenant", json=change, headers={"If-Match": tag}), 403, "graph_not_allowed"
                )


class TestSignedIn:
    @pytest.mark.parametrize(
        ("role", "reads", "writes", "manages"),
        [
            (Role.READER, 200, 403, 403),
            (Role.MEMBER, 200, 200, 403),
            (Role.ADMIN, 200, 200, 200),
            (Role.OWNER, 200, 200, 200),
        ],
    )
    async def test_a_role_has_the_rights_of_its_scopes(
        self,
        http: httpx2.AsyncClient,
        databases: Databases,
        caller: Caller,
        pepper: bytes,
        role: Role,
        reads: int,
        writes: int,
        manages: int,
    ) -> None:
        await signed_in_as(http, databases, caller, role, pepper)
        assert (await http.get("/v1/graphs")).status_code == reads
        memory = {"items": [{"text": "tea is at four"}]}
        assert (await http.post("/v1/graphs/default/memories", json=memory)).status_code == writes
        for path in ("/v1/keys", "/v1/members", "/v1/invitations"):
            assert (await http.get(path)).status_code == manages

    @pytest.mark.proves("security: browser-calls")
    async def test_only_own_tenants_can_be_reached(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes, new_tenant: NewTenant
    ) -> None:
        await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        foreign = (await new_tenant()).slug
        said = set()
        for tenant in (foreign, "nowhere", "", "x" * 500):
            answer = await http.get("/v1/graphs", headers={"X-Recollect-Tenant": tenant})
            problem(answer, 401)
            said.add(answer.content)
        assert len(said) == 1

    async def test_a_removed_member_loses_access_at_once(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        await joined(databases, caller, Role.OWNER, pepper=pepper)
        admin = await signed_in_as(http, databases, caller, Role.ADMIN, pepper)
        assert (await http.delete(f"/v1/members/{admin.id}")).status_code == 204
        problem(await http.get("/v1/graphs"), 401)

    @pytest.mark.proves("security: browser-calls")
    async def test_a_page_of_another_site_cannot_call(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        problem(await http.get("/v1/keys", headers={"Origin": "https://evil.example"}), 403, "origin_not_allowed")
        del http.headers["X-Recollect-Tenant"]
        problem(await http.get("/v1/keys"), 401)

    @pytest.mark.proves("security: browser-calls")
    async def test_the_cookie_is_not_valid_for_mcp(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        await signed_in_as(http, databases, caller, Role.OWNER, pepper)
        assert (await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401

    async def test_one_members_rate_limit_does_not_affect_others(
        self,
        settings: Settings,
        databases: Databases,
        caller: Caller,
        pepper: bytes,
        new_tenant: NewTenant,
        operator: Operator,
    ) -> None:
        elsewhere = operator_caller(await new_tenant())
        await plans.set_plan(operator, "one-a-minute", {"requests_per_minute": 1})
        await tenants.set_plan(operator, caller.tenant, "one-a-minute")
        patient = settings.model_copy(update={"rate_limit_wait_seconds": MAX_WAIT_SECONDS})
        with serving(patient) as gateway:
            async with browser(gateway) as http, browser(gateway) as other:
                await signed_in_as(http, databases, caller, Role.READER, pepper)
                assert [(await http.get("/v1/graphs")).status_code for _ in range(3)] == [200, 429, 429]
                await signed_in_as(other, databases, elsewhere, Role.READER, pepper)
                assert [(await other.get("/v1/graphs")).status_code for _ in range(3)] == [200, 200, 200]
