"""Signing in by a tenant's identity provider, over real HTTP, with a provider on loopback that may lie."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.identity_providers import service as providers
from recollect.accounts.identity_providers.model import IdentityProvider, NewProvider, ProviderChange
from recollect.accounts.members import service as members
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.postgres.tenant_database import TenantDatabase
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway, serving
from tests.support.identity_provider import (
    CLIENT_ID,
    Account,
    Forge,
    IdentityProviderServer,
    elliptic_key,
    identity_provider,
    sign_in_by,
    signed_by_public_key,
    signed_by_stranger,
    to_provider,
    unsigned,
)
from tests.support.people import PASSWORD, browser, joined, new_email, send_form, sign_in, submit
from tests.support.web_server import plain

LOOPBACK = ["127.0.0.0/8"]


@pytest.fixture(scope="module")
def reaching(settings: Settings) -> Settings:
    """Settings that allow addresses on this machine."""
    return settings.model_copy(update={"outbound_networks": LOOPBACK})


@pytest.fixture(scope="module")
def gateway(reaching: Settings) -> Iterator[RunningGateway]:
    with serving(reaching) as running:
        yield running


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(gateway) as client:
        yield client


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def idp() -> AsyncIterator[IdentityProviderServer]:
    async with identity_provider() as server:
        yield server


@dataclass(frozen=True)
class Organization:
    """A tenant whose people sign in by a provider."""

    caller: Caller
    provider: IdentityProvider
    idp: IdentityProviderServer
    databases: Databases
    pepper: bytes

    @property
    def db(self) -> TenantDatabase:
        """The database of the tenant."""
        return self.databases.of(self.caller.tenant_id)

    @property
    def page(self) -> str:
        """The page that offers its provider."""
        return f"/sign-in?organization={self.caller.tenant}"

    async def invite(self, email: str, role: Role = Role.MEMBER) -> str:
        """The link of an invitation."""
        async with self.db.transaction(self.caller) as tx:
            return f"/join/{(await members.invite(tx, email, role, pepper=self.pepper)).secret}"

    async def join(self, http: httpx2.AsyncClient, **account: object) -> Account:
        """A person with an account at the provider joins by an invitation. Returns the account."""
        self.idp.account = Account(email=new_email(), **account)  # type: ignore[arg-type]
        answer = await sign_in_by(http, self.idp, await self.invite(self.idp.account.email))
        assert (answer.status_code, answer.headers.get("location")) == (303, f"/app/{self.caller.tenant}"), answer.text
        return self.idp.account

    async def change(self, **change: object) -> None:
        async with self.db.transaction(self.caller) as tx:
            change_ = ProviderChange(**change)  # type: ignore[arg-type]
            await providers.change_provider(tx, self.provider.id, change_, pepper=self.pepper)


async def set_up(databases: Databases, caller: Caller, idp: IdentityProviderServer, pepper: bytes) -> Organization:
    new = NewProvider("Acme Login", idp.issuer, CLIENT_ID, idp.secret)
    async with databases.of(caller.tenant_id).transaction(caller) as tx:
        return Organization(caller, await providers.add_provider(tx, new, pepper=pepper), idp, databases, pepper)


@pytest.fixture
async def acme(databases: Databases, caller: Caller, idp: IdentityProviderServer, pepper: bytes) -> Organization:
    return await set_up(databases, caller, idp, pepper)


@pytest.fixture
async def other_caller(new_tenant: NewTenant) -> Caller:
    """The operator of another tenant."""
    return operator_caller(await new_tenant())


async def is_signed_in(http: httpx2.AsyncClient) -> bool:
    return (await http.get("/account")).status_code == 200


async def is_member(http: httpx2.AsyncClient, tenant: str) -> bool:
    """Whether the browser can call `/v1` for that tenant."""
    return (await http.get("/v1/plan", headers={"X-Recollect-Tenant": tenant})).status_code == 200


class TestSignIn:
    async def test_a_person_joins_by_an_invitation_and_signs_in_again(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        account = await acme.join(http)
        assert account.email in (await http.get("/account")).text
        assert await is_member(http, acme.caller.tenant)
        async with browser(gateway) as again:
            answer = await sign_in_by(again, acme.idp, acme.page)
            assert answer.status_code == 303, answer.text
            assert await is_member(again, acme.caller.tenant)
        async with acme.db.transaction(acme.caller, read_only=True) as tx:
            assert [(each.email, each.name) for each in await members.list_members(tx)] == [(account.email, "Grace")]

    async def test_a_sign_in_leads_to_the_requested_page(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        await acme.join(http)
        http.cookies.clear()
        answer = await sign_in_by(http, acme.idp, f"{acme.page}&next=/account?here=1")
        assert answer.headers["location"] == "/account?here=1"
        http.cookies.clear()
        assert (await sign_in_by(http, acme.idp, f"{acme.page}&next=//evil.example")).headers["location"] == "/app"

    async def test_the_provider_is_offered_to_clients_of_the_tenants_endpoint(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        asked = httpx2.QueryParams({"resource": f"{gateway.url}/t/{acme.caller.tenant}/mcp", "client_id": "x"})
        shown = await http.get((await http.get(f"/oauth/authorize?{asked}")).headers["location"])
        assert "Sign in by <bdi>Acme Login</bdi>" in shown.text

    async def test_no_page_tells_whether_an_organisation_without_a_provider_exists(
        self, http: httpx2.AsyncClient, other_caller: Caller
    ) -> None:
        there = await http.get(f"/sign-in?organization={other_caller.tenant}")
        nowhere = await http.get("/sign-in?organization=nowhere-at-all")
        assert there.text.replace(other_caller.tenant, "X") == nowhere.text.replace("nowhere-at-all", "X")

    async def test_a_person_who_is_not_invited_is_refused(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        answer = await sign_in_by(http, acme.idp, acme.page)
        assert (answer.status_code, "is not connected to Recollect yet" in answer.text) == (403, True)
        assert not await is_signed_in(http)

    @pytest.mark.proves("security: provider-addresses-find-nobody")
    async def test_an_address_alone_identifies_nobody(
        self, http: httpx2.AsyncClient, acme: Organization, databases: Databases, pepper: bytes
    ) -> None:
        """A provider that gives the address of a member with a password does not sign in that member."""
        person = await joined(databases, acme.caller, Role.OWNER, pepper=pepper)
        acme.idp.account = Account(email=person.email)
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403
        await acme.join(http)
        acme.idp.account = Account(subject="another", email=acme.idp.account.email)
        http.cookies.clear()
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403
        assert not await is_signed_in(http)

    async def test_an_invitation_is_valid_for_the_invited_address_only(
        self, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        link = await acme.invite(new_email())
        acme.idp.account = Account(email=new_email())
        assert (await sign_in_by(http, acme.idp, link)).status_code == 403
        assert (await http.get(link)).status_code == 200, "it was not used up"

    @pytest.mark.proves("security: provider-addresses-find-nobody")
    @pytest.mark.parametrize("verified", [False, None, "true", 1])
    async def test_an_unverified_address_does_not_count(
        self, http: httpx2.AsyncClient, acme: Organization, verified: object
    ) -> None:
        acme.idp.account = Account(email=new_email(), email_verified=verified)
        answer = await sign_in_by(http, acme.idp, await acme.invite(acme.idp.account.email))
        assert (answer.status_code, "verified" in answer.text) == (403, True)

    async def test_a_refusal_at_the_provider_is_reported(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        for said in ("error=access_denied", "code="):
            asked = parse_qs(urlsplit(await to_provider(http, acme.page)).query)
            answer = await http.get(f"{asked['redirect_uri'][0]}?{said}&state={asked['state'][0]}")
            assert (answer.status_code, "did not sign you in" in answer.text) == (403, True)
        assert acme.idp.request_count("/token") == 0, "an empty code is none"

    @pytest.mark.proves("security: disabled-providers")
    async def test_a_disabled_provider_signs_nobody_in_and_its_sessions_end(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        await acme.join(http)
        async with browser(gateway) as again:
            landed = acme.idp.authorize(await to_provider(again, acme.page))
            await acme.change(enabled=False)
            assert (await again.get(landed)).status_code == 403
            assert "Acme Login" not in (await again.get(acme.page)).text
        assert not await is_signed_in(http)
        assert not await is_member(http, acme.caller.tenant)

    @pytest.mark.proves("security: disabled-providers")
    async def test_deleting_a_provider_ends_its_sessions(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        await acme.join(http)
        async with acme.db.transaction(acme.caller) as tx:
            await providers.delete_provider(tx, acme.provider.id)
        assert not await is_signed_in(http)

    async def test_a_removed_member_cannot_sign_in_by_the_provider(
        self, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        await acme.join(http)
        async with acme.db.transaction(acme.caller) as tx:
            (member,) = await members.list_members(tx)
            await members.remove_member(tx, member.person_id)
        assert not await is_member(http, acme.caller.tenant)
        http.cookies.clear()
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403

    async def test_a_person_known_only_by_the_provider_is_erased_when_they_leave(
        self, http: httpx2.AsyncClient, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        """They have no account of their own to delete. A person who has one, and connected the provider, keeps it."""
        ada = await joined(acme.databases, acme.caller, Role.MEMBER, pepper=acme.pepper)
        grace = await acme.join(http)
        stored = "SELECT p.id FROM people p WHERE p.email = $1"
        grace_id = await owner.fetchval(stored, grace.email)
        left = await submit(http, "/account", f"/account/organisations/{acme.caller.tenant}/leave")
        assert left.status_code == 303, left.text
        assert not await is_signed_in(http)
        assert await owner.fetchval(stored, grace.email) is None
        assert await owner.fetchval("SELECT count(*) FROM sessions WHERE person_id = $1", grace_id) == 0
        async with acme.db.transaction(acme.caller) as tx:
            await members.remove_member(tx, ada.id)
        assert await owner.fetchval(stored, ada.email) == ada.id
        assert (await sign_in_by(http, acme.idp, await acme.invite(grace.email))).status_code == 303
        assert await owner.fetchval(stored, grace.email) not in (None, grace_id)


class TestUserInfo:
    """If a provider's ID tokens contain no address, its userinfo endpoint is asked, as in OpenID Connect."""

    async def answered(self, http: httpx2.AsyncClient, acme: Organization, **userinfo: object) -> httpx2.Response:
        acme.idp.account, acme.idp.userinfo = Account(email=new_email()), userinfo
        return await sign_in_by(http, acme.idp, await acme.invite(acme.idp.account.email))

    async def test_userinfo_identifies_a_person(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        answer = await self.answered(http, acme)
        assert answer.status_code == 303, answer.text
        async with acme.db.transaction(acme.caller, read_only=True) as tx:
            (member,) = await members.list_members(tx)
        assert (member.email, member.name) == (acme.idp.account.email, "Grace")

    @pytest.mark.proves("security: userinfo-subject")
    @pytest.mark.parametrize("told", [{"sub": "another"}, {"sub": None}, {"email_verified": None}, {"email": None}])
    async def test_userinfo_of_another_subject_or_without_an_address_is_ignored(
        self, http: httpx2.AsyncClient, acme: Organization, told: dict[str, Any]
    ) -> None:
        """Userinfo of another subject must not be used (OpenID Connect Core, 5.3.2)."""
        assert (await self.answered(http, acme, **told)).status_code == 403
        assert not await is_signed_in(http)

    async def test_failing_userinfo_refuses_the_sign_in(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        acme.idp.answers["/userinfo"] = plain(b"{}", "Content-Type: application/json", status="500 Broken")
        assert (await self.answered(http, acme)).status_code == 403
        assert not await is_signed_in(http)

    async def test_userinfo_is_not_requested_if_the_token_has_the_address(
        self, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        await acme.join(http)
        assert acme.idp.request_count("/userinfo") == 0


class TestTokens:
    """Each token but the right one is refused, without a reason."""

    async def refused(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        acme.idp.account = Account(email=new_email())
        answer = await sign_in_by(http, acme.idp, await acme.invite(acme.idp.account.email))
        assert (answer.status_code, "did not prove who you are" in answer.text) == (403, True), answer.text
        assert not await is_signed_in(http)

    @pytest.mark.proves("security: id-tokens")
    @pytest.mark.parametrize(
        "claims",
        [
            {"nonce": "another"},
            {"nonce": None},
            {"iss": "https://issuer.example"},
            {"iss": None},
            {"aud": "another client"},
            {"aud": ["another client"]},
            {"aud": None},
            {"aud": [CLIENT_ID, "another client"]},
            {"aud": CLIENT_ID, "azp": "another client"},
            {"exp": 1},
            {"exp": None},
            {"exp": "tomorrow"},
            {"iat": None},
            {"nbf": 99_999_999_999},
            {"sub": None},
        ],
        ids=str,
    )
    async def test_a_token_with_wrong_claims_is_refused(
        self, http: httpx2.AsyncClient, acme: Organization, claims: dict[str, object]
    ) -> None:
        acme.idp.claims = claims
        await self.refused(http, acme)

    @pytest.mark.proves("security: id-tokens")
    @pytest.mark.parametrize("forge", [unsigned, signed_by_public_key, signed_by_stranger])
    async def test_a_token_with_a_forged_signature_is_refused(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization, forge: Forge
    ) -> None:
        """The claims are right, including the nonce; only the signature is forged."""
        acme.idp.account = Account(email=new_email())
        landed = acme.idp.authorize(await to_provider(http, await acme.invite(acme.idp.account.email)))
        (asked,) = acme.idp.codes.values()
        right = acme.idp.id_token(asked)
        acme.idp.token = forge(acme.idp, right)
        answer = await http.get(landed)
        assert (answer.status_code, "did not prove who you are" in answer.text) == (403, True), answer.text

    @pytest.mark.proves("security: id-tokens")
    async def test_a_token_with_another_algorithm_is_refused(
        self, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        key = elliptic_key()
        acme.idp.keys, acme.idp.signs_with, acme.idp.algorithm = [key], key, "ES256"
        await self.refused(http, acme)
        await acme.change(algorithm="ES256")
        await acme.join(http)

    async def test_an_invalid_token_is_refused(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        for token in ("x", "a.b.c", "e30.e30.e30", "é.b.c", "a" * 20_000):
            acme.idp.token = token
            await self.refused(http, acme)

    async def test_a_wrong_client_secret_fails_the_sign_in(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        acme.idp.secret = "another"
        await self.refused(http, acme)
        await acme.change(client_secret="another")
        await acme.join(http)


class TestState:
    @pytest.mark.proves("security: provider-sign-ins")
    async def test_a_state_is_valid_once(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        await acme.join(http)
        http.cookies.clear()
        landed = acme.idp.authorize(await to_provider(http, acme.page))
        assert (await http.get(landed)).status_code == 303
        again = await http.get(landed)
        assert (again.status_code, "This sign-in has ended" in again.text) == (403, True)

    @pytest.mark.proves("security: provider-sign-ins")
    async def test_a_state_is_valid_in_its_own_browser_only(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        """Whoever opens another person's return address does not become that person."""
        await acme.join(http)
        http.cookies.clear()
        landed = acme.idp.authorize(await to_provider(http, acme.page))
        async with browser(gateway) as victim:
            await to_provider(victim, acme.page)
            answer = await victim.get(landed)
            assert (answer.status_code, await is_signed_in(victim)) == (403, False)
        assert (await http.get(landed)).status_code == 303, "and nothing is used up by that"

    @pytest.mark.proves("security: provider-sign-ins")
    async def test_a_state_expires(
        self, http: httpx2.AsyncClient, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        await acme.join(http)
        http.cookies.clear()
        landed = acme.idp.authorize(await to_provider(http, acme.page))
        await owner.execute(
            "UPDATE provider_sign_ins SET expires_at = now() WHERE tenant_id = $1", acme.caller.tenant_id
        )
        assert (await http.get(landed)).status_code == 403

    @pytest.mark.parametrize(
        "change", ["state=x", "state=", "iss=https://evil.example", "state=a&state=b", "x=y" * 2000]
    )
    async def test_a_changed_return_address_is_refused(
        self, http: httpx2.AsyncClient, acme: Organization, change: str
    ) -> None:
        await acme.join(http)
        http.cookies.clear()
        landed = acme.idp.authorize(await to_provider(http, acme.page))
        kept = re.sub(r"&state=[^&]*", "", landed) if change.startswith("state") else landed
        assert (await http.get(f"{kept}&{change}")).status_code == 403

    async def test_secrets_of_a_sign_in_are_not_stored(
        self, http: httpx2.AsyncClient, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        asked = parse_qs(urlsplit(await to_provider(http, acme.page)).query)
        row = await owner.fetchrow("SELECT * FROM provider_sign_ins WHERE tenant_id = $1", acme.caller.tenant_id)
        stored = str(dict(row or {}))
        for secret in (asked["state"][0], asked["nonce"][0], http.cookies["recollect_provider"]):
            assert secret not in stored

    async def test_another_site_cannot_begin_a_sign_in(self, http: httpx2.AsyncClient, acme: Organization) -> None:
        fields = {"organization": acme.caller.tenant, "provider": str(acme.provider.id)}
        assert (await http.post("/sign-in/provider", data=fields)).status_code == 403
        answer = await http.post("/sign-in/provider", data=fields, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403


class TestProviders:
    """Answers of a provider may be hostile, too."""

    @pytest.mark.proves("security: provider-requests")
    @pytest.mark.parametrize(
        "metadata",
        [
            {"issuer": "https://issuer.example"},
            {"jwks_uri": "file:///etc/passwd"},
            {"authorization_endpoint": "javascript:alert(1)"},
            {"token_endpoint": None},
            {"jwks_uri": "https://10.0.0.1/jwks"},
            {"jwks_uri": "http://169.254.169.254/latest/meta-data"},
            {"jwks_uri": 7},
        ],
        ids=str,
    )
    async def test_invalid_metadata_is_refused(
        self, http: httpx2.AsyncClient, acme: Organization, metadata: dict[str, object]
    ) -> None:
        acme.idp.metadata = metadata
        shown = await http.get(acme.page)
        answer = await send_form(http, shown.text[shown.text.index("/sign-in/provider") :], "/sign-in/provider")
        assert (answer.status_code, "cannot be reached now" in answer.text) == (403, True), answer.text

    @pytest.mark.proves("security: provider-requests")
    @pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
    async def test_answers_that_are_too_long_are_refused(
        self, http: httpx2.AsyncClient, acme: Organization, path: str
    ) -> None:
        acme.idp.answers[path] = plain(b"{" + b" " * 100_000 + b"}")
        shown = await http.get(acme.page)
        answer = await send_form(http, shown.text[shown.text.index("/sign-in/provider") :], "/sign-in/provider")
        assert answer.status_code == 403

    @pytest.mark.proves("security: provider-requests")
    async def test_answers_that_do_not_arrive_time_out(self, reaching: Settings, acme: Organization) -> None:
        hang = asyncio.Event()

        async def never(_: bytes, __: asyncio.StreamWriter) -> None:
            await hang.wait()

        acme.idp.answers["/token"] = never
        with serving(reaching.model_copy(update={"outbound_seconds": 0.5})) as hasty:
            async with browser(hasty) as http:
                answer = await sign_in_by(http, acme.idp, acme.page)
                assert (answer.status_code, "cannot be reached now" in answer.text) == (403, True)
        hang.set()

    @pytest.mark.proves("security: provider-requests")
    async def test_a_provider_at_an_internal_address_is_not_asked(self, settings: Settings, acme: Organization) -> None:
        """Loopback is not allowed, except in tests."""
        with serving(settings) as guarded:
            async with browser(guarded) as http:
                shown = await http.get(acme.page)
                answer = await send_form(http, shown.text[shown.text.index("/sign-in/provider") :], "/sign-in/provider")
                assert answer.status_code == 403
        assert acme.idp.server.connections == 0

    async def test_a_providers_documents_are_cached(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization
    ) -> None:
        await acme.join(http)
        async with browser(gateway) as again:
            assert (await sign_in_by(again, acme.idp, acme.page)).status_code == 303
        assert (acme.idp.request_count("/jwks"), acme.idp.request_count("/token")) == (1, 2)


class TestConfinement:
    """A session that a provider began is valid for its tenant, and for nothing else of the person."""

    async def connected(self, http: httpx2.AsyncClient, acme: Organization, other: Caller, email: str) -> None:
        """A person with a password, in two tenants, connects the provider and signs in by it."""
        await sign_in(http, email)
        acme.idp.account = Account(email=email)
        assert (await sign_in_by(http, acme.idp, "/account")).headers["location"] == "/account"
        assert await is_member(http, other.tenant), "connecting takes nothing from the session"
        http.cookies.clear()
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 303

    @pytest.fixture
    async def email(
        self, db: Database, databases: Databases, acme: Organization, other_caller: Caller, pepper: bytes
    ) -> str:
        """The address of an owner of both tenants."""
        person = await joined(databases, acme.caller, Role.OWNER, pepper=pepper)
        async with db.transaction(other_caller) as tx:
            issued = await members.invite(tx, person.email, Role.OWNER, pepper=pepper)
        await members.join(databases, await members.open_invitation(databases, issued.secret, pepper=pepper), person)
        return person.email

    @pytest.mark.proves("security: provider-sessions")
    async def test_a_confined_session_reaches_its_own_tenant_only(
        self, http: httpx2.AsyncClient, acme: Organization, other_caller: Caller, email: str
    ) -> None:
        await self.connected(http, acme, other_caller, email)
        assert await is_member(http, acme.caller.tenant)
        assert not await is_member(http, other_caller.tenant)
        account = (await http.get("/account")).text
        assert (acme.caller.tenant in account, f"/t/{other_caller.tenant}/mcp" in account) == (True, False)

    @pytest.mark.proves("security: provider-sessions")
    async def test_a_confined_session_cannot_reach_other_sessions_or_the_password(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        acme: Organization,
        other_caller: Caller,
        email: str,
        owner: asyncpg.Connection,
    ) -> None:
        await self.connected(http, acme, other_caller, email)
        of_their_own = """SELECT s.id::text FROM sessions s JOIN people p ON p.id = s.person_id
            WHERE p.email = $1 AND s.confined_to IS NULL"""
        async with browser(gateway) as own:
            await sign_in(own, email)
            sessions = [row["id"] for row in await owner.fetch(of_their_own, email)]
            assert len(sessions) == 2
            page = (await http.get("/account")).text
            assert 'action="/account/password"' not in page
            for session in sessions:
                assert session not in page
                await send_form(http, page, f"/account/sessions/{session}/end")
            changed = await send_form(
                http, page, "/account/password", old_password=PASSWORD, password="orange ladder beside rivers"
            )
            assert changed.status_code == 403
            assert await is_signed_in(own)

    @pytest.mark.proves("security: provider-sessions")
    async def test_a_confined_session_gives_no_grant_in_another_tenant(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization, other_caller: Caller, email: str
    ) -> None:
        await self.connected(http, acme, other_caller, email)
        metadata = {"client_name": "X", "redirect_uris": ["http://127.0.0.1:1/cb"]}
        client = (await http.post("/oauth/register", json=metadata)).json()["client_id"]
        for tenant, expected in ((acme.caller.tenant, 200), (other_caller.tenant, 400)):
            asked = {
                "response_type": "code",
                "client_id": client,
                "redirect_uri": "http://127.0.0.1:1/cb",
                "code_challenge": "c" * 43,
                "code_challenge_method": "S256",
                "resource": f"{gateway.url}/t/{tenant}/mcp",
            }
            assert (await http.get("/oauth/authorize", params=asked)).status_code == expected

    @pytest.mark.proves("security: provider-sessions")
    async def test_a_confined_session_accepts_no_invitation(
        self, http: httpx2.AsyncClient, acme: Organization, new_tenant: NewTenant, db: Database, pepper: bytes
    ) -> None:
        """A session by tenant A's provider cannot use an invitation of tenant C to the same address."""
        account = await acme.join(http)
        third = operator_caller(await new_tenant())
        async with db.transaction(third) as tx:
            secret = (await members.invite(tx, account.email, Role.OWNER, pepper=pepper)).secret
        assert (await submit(http, f"/join/{secret}")).status_code == 403
        assert not await is_member(http, third.tenant)

    @pytest.mark.proves("security: provider-takes-no-address")
    async def test_a_person_known_by_a_provider_does_not_occupy_their_address(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        acme: Organization,
        other_caller: Caller,
        databases: Databases,
        pepper: bytes,
    ) -> None:
        """Tenant A's provider gave an address. Its owner can still create an account with it, and sign in to that."""
        account = await acme.join(http)
        person = await joined(databases, other_caller, Role.OWNER, pepper=pepper, email=account.email)
        async with browser(gateway) as own:
            await sign_in(own, person.email)
            assert await is_member(own, other_caller.tenant)
            assert not await is_member(own, acme.caller.tenant)
        assert not await is_member(http, other_caller.tenant)

    async def test_connecting_a_provider_requires_a_session_of_ones_own(
        self, http: httpx2.AsyncClient, acme: Organization, other_caller: Caller, email: str
    ) -> None:
        await self.connected(http, acme, other_caller, email)
        shown = await http.get("/account")
        fields = {"organization": acme.caller.tenant, "provider": str(acme.provider.id), "connect": "yes"}
        assert (await send_form(http, shown.text, "/sign-in/provider", **fields)).status_code == 403

    @pytest.mark.proves("security: provider-addresses-find-nobody")
    async def test_connecting_requires_to_be_still_signed_in(
        self, http: httpx2.AsyncClient, acme: Organization, email: str
    ) -> None:
        await sign_in(http, email)
        acme.idp.account = Account(email=email)
        landed = acme.idp.authorize(await to_provider(http, "/account"))
        del http.cookies["recollect_session"]
        assert (await http.get(landed)).status_code == 403
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 403

    async def test_an_identity_belongs_to_one_person(
        self,
        http: httpx2.AsyncClient,
        acme: Organization,
        databases: Databases,
        pepper: bytes,
        other_caller: Caller,
        email: str,
    ) -> None:
        await self.connected(http, acme, other_caller, email)
        another = await joined(databases, acme.caller, Role.MEMBER, pepper=pepper)
        http.cookies.clear()
        await sign_in(http, another.email)
        answer = await sign_in_by(http, acme.idp, "/account")
        assert (answer.status_code, "another member" in answer.text) == (403, True)
        acme.idp.account = Account(email=email)
        http.cookies.clear()
        await sign_in(http, email)
        answer = await sign_in_by(http, acme.idp, "/account")
        assert (answer.status_code, "another account of this provider" in answer.text) == (403, True)


class TestTwoTenants:
    @pytest.fixture
    async def globex(self, databases: Databases, other_caller: Caller, pepper: bytes) -> AsyncIterator[Organization]:
        async with identity_provider() as server:
            yield await set_up(databases, other_caller, server, pepper)

    @pytest.mark.proves("security: provider-tenant")
    async def test_a_provider_signs_nobody_in_to_another_tenant(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization, globex: Organization
    ) -> None:
        """The same subject and address at another tenant's provider is unknown there."""
        acme.idp.account = globex.idp.account = Account(email=new_email())
        await sign_in_by(http, acme.idp, await acme.invite(acme.idp.account.email))
        assert await is_member(http, acme.caller.tenant)
        http.cookies.clear()
        assert (await sign_in_by(http, globex.idp, globex.page)).status_code == 403
        assert not await is_signed_in(http)

    @pytest.mark.proves("security: provider-sign-ins")
    async def test_one_provider_does_not_answer_for_another(
        self, http: httpx2.AsyncClient, acme: Organization, globex: Organization
    ) -> None:
        """A sign-in with one provider returns to the other's address (mix-up)."""
        await acme.join(http)
        http.cookies.clear()
        landed = acme.idp.authorize(await to_provider(http, acme.page))
        assert (await http.get(landed.replace(str(acme.provider.id), str(globex.provider.id)))).status_code == 403
        assert globex.idp.server.connections == 0

    async def test_a_tenants_page_offers_no_other_tenants_provider(
        self, http: httpx2.AsyncClient, acme: Organization, globex: Organization
    ) -> None:
        shown = await http.get(acme.page)
        assert str(globex.provider.id) not in shown.text
        form = shown.text[shown.text.index("/sign-in/provider") :]
        for fields in (
            {"provider": str(globex.provider.id)},
            {"organization": globex.caller.tenant},
            {"invitation": (await globex.invite(new_email())).removeprefix("/join/")},
        ):
            assert (await send_form(http, form, "/sign-in/provider", **fields)).status_code == 404

    @pytest.mark.proves("security: provider-tenant")
    async def test_two_tenants_with_the_same_issuer_have_separate_people(
        self, http: httpx2.AsyncClient, acme: Organization, other_caller: Caller, databases: Databases, pepper: bytes
    ) -> None:
        twin = await set_up(databases, other_caller, acme.idp, pepper)
        await acme.join(http)
        http.cookies.clear()
        assert (await sign_in_by(http, acme.idp, twin.page)).status_code == 403
        assert (await sign_in_by(http, acme.idp, acme.page)).status_code == 303
        assert not await is_member(http, other_caller.tenant)


class TestDisconnecting:
    @pytest.mark.proves("security: last-way-to-sign-in")
    async def test_disconnecting_a_provider_ends_its_sessions(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        person = await joined(acme.databases, acme.caller, Role.MEMBER, pepper=acme.pepper)
        await connected(http, acme, person.email)
        async with browser(gateway) as by_provider:
            assert (await sign_in_by(by_provider, acme.idp, acme.page)).status_code == 303
            assert await is_signed_in(by_provider)
            offered = (await by_provider.get("/account")).text
            assert "disconnect" not in offered
            barred = await send_form(by_provider, offered, disconnecting(acme))
            assert barred.status_code == 403, "who came by the provider does not take it away"
            shown = (await http.get("/account")).text
            assert "Acme Login" in shown
            assert (await send_form(http, shown, disconnecting(acme))).status_code == 303
            assert not await is_signed_in(by_provider)
            assert (await sign_in_by(by_provider, acme.idp, acme.page)).status_code == 403
        assert await is_signed_in(http)
        assert (await send_form(http, shown, disconnecting(acme))).status_code == 404
        acts = await owner.fetch(
            "SELECT actor, objects FROM audit_log WHERE tenant_id = $1 AND action = 'identity_provider.disconnected'",
            acme.caller.tenant_id,
        )
        assert [tuple(row) for row in acts] == [
            (f"person:{person.id}", [f"person:{person.id}", f"identity_provider:{acme.provider.id}"])
        ]

    @pytest.mark.proves("security: last-way-to-sign-in")
    async def test_the_last_way_to_sign_in_cannot_be_disconnected(
        self, http: httpx2.AsyncClient, acme: Organization, owner: asyncpg.Connection
    ) -> None:
        person = await joined(acme.databases, acme.caller, Role.MEMBER, pepper=acme.pepper)
        await connected(http, acme, person.email)
        await owner.execute("UPDATE people SET password_hash = NULL WHERE id = $1", person.id)
        shown = (await http.get("/account")).text
        refused = await send_form(http, shown, disconnecting(acme))
        assert (refused.status_code, "only way" in refused.text) == (409, True)
        await owner.execute(
            """INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, name)
            VALUES (gen_random_uuid(), $1, uuid_send($1), 'x', 0, 'Laptop')""",
            person.id,
        )
        assert (await send_form(http, shown, disconnecting(acme))).status_code == 303


async def connected(http: httpx2.AsyncClient, acme: Organization, email: str) -> None:
    """Sign in with the password and connect the provider."""
    await sign_in(http, email)
    acme.idp.account = Account(email=email)
    answer = await sign_in_by(http, acme.idp, "/account")
    assert (answer.status_code, answer.headers.get("location")) == (303, "/account"), answer.text


def disconnecting(acme: Organization) -> str:
    return f"/account/providers/{acme.provider.id}/disconnect"
