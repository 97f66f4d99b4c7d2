"""Joining by the verified domain of an e-mail address: claims, their proof by DNS, and the role of whoever joins."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.email_domains import service as domains
from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.outbound.txt_records import TextRecords
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.clocks import clock_ahead
from tests.support.dns_server import NameServer, name_server
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.identity_provider import (
    CLIENT_ID,
    Account,
    IdentityProviderServer,
    identity_provider,
    sign_in_by,
)
from tests.support.people import browser

PATH = "/v1/email-domains"


@pytest.fixture(scope="module")
async def dns() -> AsyncIterator[NameServer]:
    async with name_server() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(settings: Settings, dns: NameServer) -> Iterator[RunningGateway]:
    own = {"outbound_networks": ["127.0.0.0/8"], "dns_servers": [dns.address]}
    with serving(settings.model_copy(update=own)) as running:
        yield running


@dataclass
class Organization:
    """A tenant with a provider and a claim of a domain, and its admin."""

    admin: httpx2.AsyncClient
    caller: Caller
    idp: IdentityProviderServer
    domain: str
    claim: dict[str, Any]
    dns: NameServer

    @property
    def page(self) -> str:
        return f"/sign-in?organization={self.caller.tenant}"

    def publish(self) -> None:
        """Publish the required DNS record, among others."""
        self.dns.records[self.claim["record_name"]] = ["v=spf1 -all", self.claim["record_value"]]

    async def verify(self) -> httpx2.Response:
        return await self.admin.post(f"{PATH}/{self.claim['id']}/verify")

    async def members(self) -> dict[str, str]:
        return {each["email"]: each["role"] for each in (await done(self.admin, "GET", "/v1/members"))["items"]}


async def organization(
    admin: httpx2.AsyncClient, caller: Caller, idp: IdentityProviderServer, domain: str, dns: NameServer
) -> Organization:
    new = {"name": "Login", "issuer": idp.issuer, "client_id": CLIENT_ID, "client_secret": idp.secret}
    await done(admin, "POST", "/v1/identity-providers", **new)
    claim = await done(admin, "POST", PATH, domain=domain)
    return Organization(admin, caller, idp, domain, claim, dns)


@pytest.fixture
async def acme(gateway: RunningGateway, admin_key: str, caller: Caller, dns: NameServer) -> AsyncIterator[Organization]:
    async with identity_provider() as idp, gateway.http(admin_key) as admin:
        yield await organization(admin, caller, idp, f"{uuid4().hex}.example", dns)


@pytest.fixture
async def globex(
    gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant, dns: NameServer, acme: Organization
) -> AsyncIterator[Organization]:
    """Another tenant that claims the same domain."""
    caller = operator_caller(await new_tenant())
    issued = await issue(caller, kind="admin")
    async with identity_provider() as idp, gateway.http(issued.secret) as admin:
        yield await organization(admin, caller, idp, acme.domain, dns)


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(gateway) as client:
        yield client


class TestClaims:
    async def test_a_claim_is_verified_by_dns(self, acme: Organization) -> None:
        assert acme.claim["record_name"] == f"_recollect.{acme.domain}"
        assert acme.claim["verified_at"] is None
        problem(await acme.verify(), 409, "domain_not_verified")
        acme.dns.records[acme.claim["record_name"]] = [acme.claim["record_value"] + "x", "recollect-domain="]
        problem(await acme.verify(), 409, "domain_not_verified")
        acme.publish()
        verified = await acme.verify()
        assert verified.status_code == 200
        assert verified.json()["verified_at"] is not None
        (listed,) = (await done(acme.admin, "GET", PATH))["items"]
        assert listed == verified.json()

    async def test_a_failed_verification_can_be_repeated_under_the_same_idempotency_key(
        self, acme: Organization
    ) -> None:
        acme.dns.records[acme.claim["record_name"]] = []
        path, headers = f"{PATH}/{acme.claim['id']}/verify", {"Idempotency-Key": "one"}
        again = acme.admin.build_request("POST", path, headers=headers)
        problem(await acme.admin.send(again), 409, "domain_not_verified")
        acme.publish()
        verified = await acme.admin.send(again)
        assert (verified.status_code, (await acme.admin.send(again)).content) == (200, verified.content)

    @pytest.mark.proves("security: one-tenant-per-domain")
    async def test_a_domain_belongs_to_one_tenant_at_a_time(
        self, acme: Organization, globex: Organization, owner: asyncpg.Connection
    ) -> None:
        """Both have published their records. The first one keeps the domain until a week has passed without a proof."""
        for each in (acme, globex):
            each.publish()
        globex.dns.records[globex.claim["record_name"]] += [acme.claim["record_value"]]
        assert (await acme.verify()).status_code == 200
        problem(await globex.verify(), 409, "domain_not_verified")
        assert (await acme.verify()).status_code == 200
        await owner.execute(
            "UPDATE email_domains SET checked_at = now() - interval '8 days' WHERE tenant_id = $1",
            acme.caller.tenant_id,
        )
        assert (await globex.verify()).status_code == 200
        problem(await acme.verify(), 409, "domain_not_verified")
        assert (await done(acme.admin, "GET", PATH))["items"][0]["verified_at"] is None

    async def test_another_tenants_record_proves_nothing(self, acme: Organization, globex: Organization) -> None:
        acme.publish()
        problem(await globex.verify(), 409, "domain_not_verified")

    async def test_a_silent_name_server_changes_nothing(self, acme: Organization) -> None:
        acme.publish()
        assert (await acme.verify()).status_code == 200
        acme.dns.silent.add(acme.claim["record_name"])
        problem(await acme.verify(), 409, "domain_not_verified")
        assert (await done(acme.admin, "GET", PATH))["items"][0]["verified_at"] is not None

    @pytest.mark.parametrize(
        "domain", ["com", "a b.example", "-a.example", "exämple.com", "a..example", "1.2.3.4", "*.x.example"]
    )
    async def test_an_invalid_domain_is_refused(self, acme: Organization, domain: str) -> None:
        assert problem(await acme.admin.post(PATH, json={"domain": domain}), 400)["path"] == "domain"

    @pytest.mark.proves("security: email-domains")
    @pytest.mark.parametrize("role", ["owner", "admin"])
    async def test_a_claim_cannot_give_an_admin_role(self, acme: Organization, role: str) -> None:
        refused = await acme.admin.post(PATH, json={"domain": "other.example", "role": role})
        assert problem(refused, 400)["path"] == "role"
        refused = await acme.admin.patch(f"{PATH}/{acme.claim['id']}", json={"role": role})
        assert problem(refused, 400)["path"] == "role"

    async def test_another_tenant_cannot_reach_a_claim(self, acme: Organization, globex: Organization) -> None:
        for method, rest, body in (("PATCH", "", {"role": "reader"}), ("DELETE", "", None), ("POST", "/verify", None)):
            strange = await globex.admin.request(method, f"{PATH}/{acme.claim['id']}{rest}", json=body)
            missing = await globex.admin.request(method, f"{PATH}/{uuid4()}{rest}", json=body)
            assert (strange.status_code, strange.content) == (missing.status_code, missing.content)
            problem(strange, 404, "domain_not_found")
        assert [each["id"] for each in (await done(globex.admin, "GET", PATH))["items"]] == [globex.claim["id"]]

    async def test_claims_are_limited_in_number_and_unique(self, acme: Organization) -> None:
        problem(await acme.admin.post(PATH, json={"domain": acme.domain.upper()}), 409, "domain_exists")
        for number in range(19):
            await done(acme.admin, "POST", PATH, domain=f"d{number}.example")
        problem(await acme.admin.post(PATH, json={"domain": "more.example"}), 409, "too_many_domains")


class TestJoining:
    async def test_a_person_joins_by_the_domain_with_the_role_of_the_claim(
        self, http: httpx2.AsyncClient, gateway: RunningGateway, acme: Organization
    ) -> None:
        acme.publish()
        await acme.verify()
        ada, grace = (Account(email=f"{name}@{acme.domain}") for name in ("ada", "grace"))
        acme.idp.account = ada
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 303
        await done(acme.admin, "PATCH", f"{PATH}/{acme.claim['id']}", role="reader")
        async with browser(gateway) as other:
            acme.idp.account = grace
            assert (await sign_in_by(other, acme.idp, acme.page)).status_code == 303
        assert await acme.members() == {ada.email: "member", grace.email: "reader"}

    @pytest.mark.proves("security: email-domains")
    @pytest.mark.parametrize("email", ["ada@sub.{}", "ada@{}.evil.example", "ada@evil-{}", "{}@other.example"])
    async def test_an_address_in_another_domain_does_not_join(
        self, http: httpx2.AsyncClient, acme: Organization, email: str
    ) -> None:
        acme.publish()
        await acme.verify()
        acme.idp.account = Account(email=email.format(acme.domain))
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403
        assert await acme.members() == {}

    async def test_an_unverified_address_does_not_join(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        acme.publish()
        await acme.verify()
        acme.idp.account = Account(email=f"ada@{acme.domain}", email_verified=False)
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403

    @pytest.mark.proves("security: email-domains")
    async def test_an_unverified_claim_lets_nobody_join(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        acme.publish()
        acme.idp.account = Account(email=f"ada@{acme.domain}")
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403

    @pytest.mark.proves("security: email-domains")
    async def test_another_tenants_provider_lets_nobody_join(
        self, http: httpx2.AsyncClient, acme: Organization, globex: Organization
    ) -> None:
        """Only the provider of the tenant that owns the domain, not that of another tenant that claims it."""
        acme.publish()
        await acme.verify()
        globex.idp.account = Account(email=f"ada@{acme.domain}")
        assert (await sign_in_by(http, globex.idp, globex.page)).status_code == 403
        assert (await globex.members(), await acme.members()) == ({}, {})

    @pytest.mark.proves("security: email-domains")
    async def test_a_claim_is_verified_again_and_lost_without_its_record(
        self, http: httpx2.AsyncClient, gateway: RunningGateway, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        acme.publish()
        await acme.verify()
        aged = "UPDATE email_domains SET checked_at = now() - interval '2 days' WHERE tenant_id = $1"
        await owner.execute(aged, acme.caller.tenant_id)
        acme.idp.account = Account(email=f"ada@{acme.domain}")
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 303
        await owner.execute(aged, acme.caller.tenant_id)
        acme.dns.records[acme.claim["record_name"]] = []
        async with browser(gateway) as other:
            acme.idp.account = Account(email=f"grace@{acme.domain}")
            assert (await sign_in_by(other, acme.idp, acme.page)).status_code == 403
        assert (await done(acme.admin, "GET", PATH))["items"][0]["verified_at"] is None

    async def test_a_clock_that_is_behind_keeps_no_old_proof(
        self, db: Database, settings: Settings, dns: NameServer, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        records = TextRecords(settings.model_copy(update={"dns_servers": [dns.address]}))
        acme.publish()
        await acme.verify()
        with clock_ahead(timedelta(days=-7)):
            assert await domains.role_for(db, records, acme.caller, f"ada@{acme.domain}") == acme.claim["role"]
            acme.dns.records[acme.claim["record_name"]] = []
            await owner.execute(
                "UPDATE email_domains SET checked_at = now() - interval '2 days' WHERE tenant_id = $1",
                acme.caller.tenant_id,
            )
            assert await domains.role_for(db, records, acme.caller, f"ada@{acme.domain}") is None

    async def test_the_provider_is_offered_for_an_address_in_the_domain(
        self, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        page = f"/sign-in?organization=ada%40{acme.domain}"
        assert "Sign in by <bdi>Login</bdi>" not in (await http.get(page)).text
        acme.publish()
        await acme.verify()
        assert "Sign in by <bdi>Login</bdi>" in (await http.get(page)).text
        acme.idp.account = Account(email=f"ada@{acme.domain}")
        assert (await sign_in_by(http, acme.idp, page)).status_code == 303

    async def test_after_a_claim_is_deleted_members_stay_and_nobody_else_joins(
        self, http: httpx2.AsyncClient, gateway: RunningGateway, acme: Organization
    ) -> None:
        acme.publish()
        await acme.verify()
        acme.idp.account = Account(email=f"ada@{acme.domain}")
        await sign_in_by(http, acme.idp, acme.page)
        assert (await acme.admin.delete(f"{PATH}/{acme.claim['id']}")).status_code == 204
        async with browser(gateway) as other:
            assert (await sign_in_by(other, acme.idp, acme.page)).status_code == 303, "known already"
        async with browser(gateway) as stranger:
            acme.idp.account = Account(email=f"grace@{acme.domain}")
            assert (await sign_in_by(stranger, acme.idp, acme.page)).status_code == 403
        assert list(await acme.members()) == [f"ada@{acme.domain}"]
