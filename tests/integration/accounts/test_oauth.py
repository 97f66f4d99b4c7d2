"""Grants, codes, tokens, clients and signing keys, on a real database."""

import asyncio
import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError
from joserfc.jwk import ECKey, KeySet

from recollect.accounts.identity.model import generate_secret, hash_secret
from recollect.accounts.members import service as members
from recollect.accounts.members.model import subject_of
from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.clients.model import OAuthClient
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import (
    MAX_GRANTS,
    MAX_SIBLINGS,
    Approval,
    IssuedTokens,
    TokenTimes,
    authorization_server,
)
from recollect.accounts.oauth.grants.service import WrongResource
from recollect.accounts.oauth.signing import service as signing
from recollect.accounts.oauth.signing.model import Vault
from recollect.accounts.people.model import Membership, Person
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Rates, Role, Scope
from recollect.cells.databases import Databases
from recollect.errors import InvalidInput, NotFound, TenantReadOnly, TenantSuspended, Unauthenticated
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.support.people import joined

PEPPER = b"pepper"
RESOURCE = "https://memory.example.com/mcp"
CLIENT = "https://client.example.com/oauth.json"
TIMES = TokenTimes.of(Settings())


class Household:
    """A person of one tenant, and what they allow a client to do there."""

    def __init__(self, db: Database, caller: Caller, person: Person, role: Role) -> None:
        self.db, self.caller, self.person, self.role = db, caller, person, role

    def asked(self, **changed: Any) -> Approval:
        approval = Approval(
            self.person.id,
            CLIENT,
            "A client",
            ("memory:read", "memory:write"),
            None,
            None,
            RESOURCE,
            "http://127.0.0.1/cb",
            "challenge",
        )
        return replace(approval, **changed)

    async def approve(self, **changed: Any) -> str:
        membership = Membership(
            self.caller.tenant_id, self.caller.tenant, "Tenant", "active", self.role, "unlimited", None, None, None
        )
        async with self.db.transaction(grants.approving(membership, self.person.id)) as tx:
            return await grants.approve(tx, self.asked(**changed), pepper=PEPPER)

    async def redeem(self, code: str, *, client_id: str = CLIENT, refreshes: bool = True) -> IssuedTokens | None:
        async with self.db.transaction(authorization_server(self.caller.tenant_id)) as tx:
            presented = await grants.present_code(tx, code, client_id, pepper=PEPPER)
            if presented is None:
                return None
            return await grants.redeem_code(tx, presented, refreshes=refreshes, times=TIMES, pepper=PEPPER)

    async def tokens(self, **changed: Any) -> IssuedTokens:
        issued = await self.redeem(await self.approve(**changed), client_id=changed.get("client_id", CLIENT))
        assert issued is not None
        return issued

    async def refresh(
        self, token: str | None, *scopes: str, times: TokenTimes = TIMES, client_id: str = CLIENT
    ) -> IssuedTokens | None:
        assert token is not None
        async with self.db.transaction(authorization_server(self.caller.tenant_id)) as tx:
            presented = await grants.present_refresh(tx, token, client_id, times=times, pepper=PEPPER)
            if presented is None:
                return None
            return await grants.refresh(tx, presented, scopes or None, times=times, pepper=PEPPER)

    async def holder(self, issued: IssuedTokens, resource: str | None = RESOURCE) -> Caller:
        return await grants.authenticate(Databases(self.db), issued.access, resource=resource, pepper=PEPPER)

    async def holds(self, issued: IssuedTokens) -> bool:
        try:
            await self.holder(issued)
        except Unauthenticated:
            return False
        return True


async def used_earlier(owner: asyncpg.Connection, refresh_token: str, minutes: int) -> None:
    """Act as if a refresh token had been used this much earlier; an unused one stays unused."""
    await owner.execute(
        "UPDATE oauth_refresh_tokens SET used_at = used_at - $2::interval WHERE hash = $1",
        hash_secret(refresh_token, PEPPER),
        timedelta(minutes=minutes),
    )


@pytest.fixture
async def ada(db: Database, databases: Databases, caller: Caller) -> Household:
    person = await joined(databases, caller, Role.ADMIN, pepper=PEPPER)
    return Household(db, caller, person, Role.ADMIN)


class TestTokens:
    async def test_an_access_token_is_a_caller_with_the_granted_scopes_graphs_and_toolsets(
        self, ada: Household, db: Database, caller: Caller
    ) -> None:
        async with db.transaction(caller) as tx:
            work = await graphs.create_graph(tx, NewGraph("work"))
        issued = await ada.tokens(graph_ids=(work.id,), toolsets=("agent",), scopes=("memory:read", "openid"))
        assert issued.scopes == ("memory:read", "openid")
        holder = await ada.holder(issued)
        assert (holder.tenant_id, holder.tenant, holder.role) == (caller.tenant_id, caller.tenant, Role.ADMIN)
        assert holder.scopes == {Scope.MEMORY_READ}
        assert (holder.graphs, holder.toolsets) == (frozenset({work.id}), frozenset({"agent"}))
        assert holder.default_graph == "work", "a call that names no graph means one that it reaches"
        assert holder.expires_at is not None
        assert holder.subject.startswith("grant:")

    async def test_a_token_has_the_limits_of_its_tenants_plan(self, ada: Household, owner: asyncpg.Connection) -> None:
        await owner.execute("UPDATE tenants SET plan = 'free' WHERE id = $1", ada.caller.tenant_id)
        holder = await ada.holder(await ada.tokens())
        assert (holder.plan, holder.rates) == ("free", Rates(600, 300, 10))

    async def test_a_token_is_valid_for_its_resource_only(self, ada: Household) -> None:
        issued = await ada.tokens()
        await ada.holder(issued)
        elsewhere = ["https://memory.example.com/t/x/mcp", "https://other.example.com/mcp", f"{RESOURCE}/", "", None]
        for resource in elsewhere:
            with pytest.raises(WrongResource):
                await ada.holder(issued, resource)

    async def test_a_token_expires(self, ada: Household, owner: asyncpg.Connection) -> None:
        issued = await ada.tokens()
        assert await ada.holds(issued)
        await owner.execute(
            "UPDATE oauth_access_tokens SET expires_at = now() WHERE hash = $1", hash_secret(issued.access, PEPPER)
        )
        assert not await ada.holds(issued)

    @pytest.mark.proves("security: token-reach")
    async def test_scopes_that_the_role_no_longer_has_are_lost_at_once(
        self, ada: Household, db: Database, caller: Caller
    ) -> None:
        issued = await ada.tokens(scopes=("memory:read", "memory:write", "tenant:admin"))
        assert (await ada.holder(issued)).scopes == set(Scope)
        async with db.transaction(caller) as tx:
            await members.change_role(tx, ada.person.id, Role.READER)
        assert (await ada.holder(issued)).scopes == {Scope.MEMORY_READ}
        refreshed = await ada.refresh(issued.refresh)
        assert refreshed is not None
        assert refreshed.scopes == ("memory:read",)

    async def test_a_removed_member_loses_all_tokens_for_good(
        self, ada: Household, db: Database, databases: Databases, caller: Caller
    ) -> None:
        issued = await ada.tokens()
        async with db.transaction(caller) as tx:
            await members.remove_member(tx, ada.person.id)
        assert not await ada.holds(issued)
        assert await ada.refresh(issued.refresh) is None
        async with db.transaction(caller) as tx:
            invited = await members.invite(tx, ada.person.email, Role.OWNER, pepper=PEPPER)
        await members.join(
            databases, await members.open_invitation(databases, invited.secret, pepper=PEPPER), ada.person
        )
        assert not await ada.holds(issued)
        assert await ada.refresh(issued.refresh) is None

    async def test_a_suspended_tenant_has_no_callers_and_issues_no_tokens(
        self, ada: Household, owner: asyncpg.Connection
    ) -> None:
        issued, code = await ada.tokens(), await ada.approve()
        await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", ada.caller.tenant_id)
        with pytest.raises(TenantSuspended):
            await ada.holder(issued)
        assert await ada.redeem(code) is None
        assert await ada.refresh(issued.refresh) is None
        await owner.execute("UPDATE tenants SET status = 'active' WHERE id = $1", ada.caller.tenant_id)
        assert await ada.holds(issued)
        assert await ada.redeem(code), "nothing was spent meanwhile"

    async def test_in_a_read_only_tenant_existing_clients_continue_and_new_grants_are_refused(
        self, ada: Household, operator: Operator
    ) -> None:
        issued, code = await ada.tokens(), await ada.approve()
        await tenants.suspend_tenant(operator, ada.caller.tenant, read_only=True)
        refreshed = await ada.refresh(issued.refresh)
        assert refreshed is not None
        assert await ada.holds(refreshed)
        assert await ada.redeem(code)
        with pytest.raises(TenantReadOnly):
            await ada.approve()
        [given, _] = await grants.list_own_grants(Databases(ada.db), ada.person.id, within=None)
        await grants.end_own_grant(Databases(ada.db), ada.person.id, given.id, within=None)
        assert len(await grants.list_own_grants(Databases(ada.db), ada.person.id, within=None)) == 1

    @pytest.mark.proves("security: oauth-secrets")
    async def test_no_secret_is_stored(self, ada: Household, owner: asyncpg.Connection) -> None:
        code = await ada.approve()
        issued = await ada.redeem(code)
        assert issued is not None
        for table in ("oauth_codes", "oauth_access_tokens", "oauth_refresh_tokens", "oauth_grants"):
            for row in await owner.fetch(f"SELECT x::text AS text, x.* FROM {table} x"):
                for secret in (code, issued.access, issued.refresh or ""):
                    assert secret not in row["text"]
                    assert secret.encode().hex() not in row["text"]


class TestCodes:
    @pytest.mark.proves("security: one-use-codes")
    async def test_a_code_works_once_and_using_it_again_ends_its_grant(self, ada: Household) -> None:
        other = await ada.tokens()
        code = await ada.approve()
        issued = await ada.redeem(code)
        assert issued is not None
        assert await ada.holds(issued)
        assert await ada.redeem(code) is None
        assert not await ada.holds(issued)
        assert await ada.refresh(issued.refresh) is None
        assert await ada.holds(other), "no other grant is touched"

    async def test_a_code_used_concurrently_gives_no_valid_tokens(self, ada: Household) -> None:
        for _ in range(5):  # Connections are made in the first round.
            code = await ada.approve()
            all_of_them = await asyncio.gather(*(ada.redeem(code) for _ in range(4)))
            (issued,) = [each for each in all_of_them if each is not None]
            assert not await ada.holds(issued), "one of them may have stolen it"

    async def test_a_code_is_useless_to_another_client_or_after_its_expiry(
        self, ada: Household, owner: asyncpg.Connection
    ) -> None:
        code = await ada.approve()
        assert await ada.redeem(code, client_id="https://other.example.com/oauth.json") is None
        await owner.execute("UPDATE oauth_codes SET expires_at = now() WHERE hash = $1", hash_secret(code, PEPPER))
        assert await ada.redeem(code) is None

    async def test_a_grant_without_refresh_token_expires_with_its_access_token(self, ada: Household) -> None:
        issued = await ada.redeem(await ada.approve(), refreshes=False)
        assert issued is not None
        assert issued.refresh is None
        async with ada.db.transaction(ada.caller) as tx:
            (grant,) = await grants.list_grants(tx)
        assert grant.last_used_at is not None
        assert grant.expires_at - grant.last_used_at <= TIMES.access + timedelta(seconds=1)

    async def test_only_a_member_can_give_a_grant_in_a_tenant(self, ada: Household, db: Database) -> None:
        stranger = Household(db, ada.caller, replace(ada.person, id=uuid4()), Role.MEMBER)
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await stranger.approve()


class TestRefreshing:
    async def test_each_refresh_gives_new_tokens(self, ada: Household) -> None:
        issued = await ada.tokens()
        refreshed = await ada.refresh(issued.refresh)
        assert refreshed is not None
        assert len({issued.access, issued.refresh, refreshed.access, refreshed.refresh}) == 4
        assert await ada.holds(refreshed)
        assert await ada.holds(issued), "the access token before holds until it ends"

    async def test_parallel_sessions_can_use_the_same_refresh_token(self, ada: Household) -> None:
        issued = await ada.tokens()
        sessions = await asyncio.gather(*(ada.refresh(issued.refresh) for _ in range(4)))
        for session in sessions:
            assert session is not None
            assert await ada.holds(session)
            assert await ada.refresh(session.refresh) is not None

    @pytest.mark.proves("security: one-use-codes")
    async def test_a_refresh_token_used_again_later_ends_the_grant(
        self, ada: Household, owner: asyncpg.Connection
    ) -> None:
        issued, other = await ada.tokens(), await ada.tokens()
        assert issued.refresh is not None
        refreshed = await ada.refresh(issued.refresh)
        assert refreshed is not None
        await used_earlier(owner, issued.refresh, 61)
        assert await ada.refresh(issued.refresh, client_id="https://other.example.com/oauth.json") is None
        assert await ada.holds(refreshed), "another client's attempt says nothing of this one's secrets"
        assert await ada.refresh(issued.refresh) is None
        assert not await ada.holds(refreshed)
        assert await ada.refresh(refreshed.refresh) is None
        assert await ada.holds(other)
        async with ada.db.transaction(ada.caller) as tx:
            assert {grant.revoked_by for grant in await grants.list_grants(tx)} == {None, "reuse"}

    @pytest.mark.proves("security: one-use-codes")
    async def test_a_repeat_does_not_extend_the_grace_period(self, ada: Household, owner: asyncpg.Connection) -> None:
        issued = await ada.tokens()
        assert issued.refresh is not None
        for minutes in (0, 59):
            await used_earlier(owner, issued.refresh, minutes)
            assert await ada.refresh(issued.refresh) is not None
        await used_earlier(owner, issued.refresh, 2)
        assert await ada.refresh(issued.refresh) is None, "61 minutes after its first use"
        assert not await ada.holds(issued)

    async def test_without_a_grace_period_each_refresh_token_works_once(self, ada: Household) -> None:
        strict = replace(TIMES, grace=timedelta(0))
        issued = await ada.tokens()
        assert await ada.refresh(issued.refresh, times=strict) is not None
        assert await ada.refresh(issued.refresh, times=strict) is None

    async def test_a_refresh_token_gives_a_limited_number_of_siblings(self, ada: Household) -> None:
        issued = await ada.tokens()
        given = [await ada.refresh(issued.refresh) for _ in range(MAX_SIBLINGS + 2)]
        assert [each is not None for each in given] == [True] * MAX_SIBLINGS + [False] * 2
        assert await ada.holds(issued), "which ends nothing"

    async def test_scopes_can_be_narrowed_and_not_widened(self, ada: Household) -> None:
        issued = await ada.tokens(scopes=("memory:read", "memory:write"))
        narrow = await ada.refresh(issued.refresh, "memory:read", "tenant:admin")
        assert narrow is not None
        assert narrow.scopes == ("memory:read",)
        assert (await ada.holder(narrow)).scopes == {Scope.MEMORY_READ}

    async def test_expired_tokens_of_a_grant_are_deleted(self, ada: Household, owner: asyncpg.Connection) -> None:
        issued: IssuedTokens | None = await ada.tokens()
        for _ in range(3):
            assert issued is not None
            issued = await ada.refresh(issued.refresh)
        tenant_id = ada.caller.tenant_id
        await owner.execute(
            "UPDATE oauth_access_tokens SET expires_at = now() - interval '25 hours' WHERE tenant_id = $1", tenant_id
        )
        await owner.execute(
            "UPDATE oauth_refresh_tokens SET used_at = used_at - interval '8 days' WHERE tenant_id = $1", tenant_id
        )
        assert issued is not None
        assert await ada.refresh(issued.refresh) is not None
        count = "SELECT count(*) FROM {} WHERE tenant_id = $1"
        assert await owner.fetchval(count.format("oauth_access_tokens"), tenant_id) == 1
        assert await owner.fetchval(count.format("oauth_refresh_tokens"), tenant_id) == 2


class TestEnding:
    async def test_a_revoked_grant_is_invalid_at_once(self, ada: Household) -> None:
        issued, other = await ada.tokens(), await ada.tokens()
        async with ada.db.transaction(ada.caller) as tx:
            first, second = await grants.list_grants(tx)
            revoked = await grants.revoke_grant(tx, first.id)
            assert await grants.revoke_grant(tx, first.id) == revoked, "doing it twice changes nothing"
        assert (revoked.revoked_by, revoked.person_email) == (ada.caller.subject, ada.person.email)
        assert (revoked.created_by, second.revoked_at) == (subject_of(ada.person.id), None)
        assert not await ada.holds(issued)
        assert await ada.refresh(issued.refresh) is None
        assert await ada.holds(other)
        with pytest.raises(NotFound):
            async with ada.db.transaction(ada.caller) as tx:
                await grants.revoke_grant(tx, uuid4())

    @pytest.mark.parametrize(("kind", "holds"), [("access", True), ("refresh", False)])
    async def test_a_client_can_revoke_an_access_token_or_the_whole_grant(
        self, ada: Household, kind: str, holds: bool
    ) -> None:
        issued = await ada.tokens()
        later = await ada.refresh(issued.refresh)
        assert later is not None
        async with ada.db.transaction(authorization_server(ada.caller.tenant_id)) as tx:
            given = (issued.access if kind == "access" else issued.refresh) or ""
            assert await grants.introspect(tx, given, "https://other.example.com/x", pepper=PEPPER) is None
            facts = await grants.introspect(tx, given, CLIENT, pepper=PEPPER)
            assert facts is not None
            await grants.give_back(tx, facts)
        assert not await ada.holds(issued)
        assert await ada.holds(later) is holds

    async def test_number_of_grants_of_a_person_is_limited(self, ada: Household, owner: asyncpg.Connection) -> None:
        first, used = await ada.tokens(), await ada.tokens()
        for _ in range(MAX_GRANTS - 2):
            await ada.tokens()
        assert await ada.holds(first)
        assert await ada.refresh(first.refresh) is not None, "it was used last"
        await ada.tokens()
        assert await ada.holds(first)
        assert not await ada.holds(used)
        live = "SELECT count(*) FROM oauth_grants WHERE tenant_id = $1 AND revoked_at IS NULL"
        assert await owner.fetchval(live, ada.caller.tenant_id) == MAX_GRANTS
        ended = "UPDATE oauth_grants SET expires_at = now() - interval '31 days' WHERE tenant_id = $1"
        await owner.execute(ended, ada.caller.tenant_id)
        await ada.tokens()
        assert await owner.fetchval("SELECT count(*) FROM oauth_grants WHERE tenant_id = $1", ada.caller.tenant_id) == 1

    async def test_grants_are_listed_in_pages_and_by_person(
        self, ada: Household, db: Database, databases: Databases
    ) -> None:
        grace = Household(db, ada.caller, await joined(databases, ada.caller, Role.MEMBER, pepper=PEPPER), Role.MEMBER)
        for household in (ada, grace, ada):
            await household.tokens()
        async with db.transaction(ada.caller, read_only=True) as tx:
            everybodys = await grants.list_grants(tx)
            assert [grant.person_id for grant in everybodys] == [ada.person.id, grace.person.id, ada.person.id]
            assert await grants.list_grants(tx, after=everybodys[0].id, limit=1) == everybodys[1:2]
            assert await grants.list_grants(tx, person_id=grace.person.id) == everybodys[1:2]


def new_client(**changed: Any) -> OAuthClient:
    client_id = generate_secret("client")
    return replace(OAuthClient(client_id, "A client", None, ("https://client.example.com/cb",), True), **changed)


class TestClients:
    async def test_a_registered_client_is_found_by_its_id_and_cannot_be_changed(self, db: Database) -> None:
        client = await clients.register(db, name="Ada's", uri=None, uris=["http://localhost/cb"], refreshes=True)
        assert await clients.find_client(db, client.id) == client
        await clients.keep_document(db, replace(client, redirect_uris=("https://evil.example/cb",)))
        assert await clients.find_client(db, client.id) == client

    async def test_a_client_document_is_stored_in_its_newest_form(self, db: Database) -> None:
        client_id = f"https://{uuid4()}.example.com/oauth.json"
        await clients.keep_document(db, new_client(id=client_id))
        changed = await clients.keep_document(db, new_client(id=client_id, name="Another", refreshes=False))
        assert await clients.find_client(db, client_id) == changed

    @pytest.mark.parametrize(
        "unknown", ["", "x", "rcl_client_0000", "https://x", "https://x/", "http://x/y", "é" * 9999]
    )
    async def test_an_invalid_client_id_is_not_looked_up(self, db: Database, unknown: str) -> None:
        assert await clients.find_client(db, unknown) is None

    async def test_number_of_clients_is_limited_and_used_ones_are_kept(
        self, db: Database, owner: asyncpg.Connection
    ) -> None:
        await owner.execute("DELETE FROM oauth_clients")
        used = await clients.register(db, name="used", uri=None, uris=["http://localhost/cb"], refreshes=True)
        await clients.note_used(db, used.id)
        await owner.execute(
            """INSERT INTO oauth_clients (id, kind, name, redirect_uris, refreshes)
            SELECT 'rcl_client_' || n, 'registered', 'n', '{http://localhost/cb}', true
            FROM generate_series(1, 10500) n"""
        )
        newest = await clients.register(db, name="new", uri=None, uris=["http://localhost/cb"], refreshes=True)
        assert await owner.fetchval("SELECT count(*) FROM oauth_clients") == 10_000
        assert await clients.find_client(db, newest.id) == newest
        assert await clients.find_client(db, used.id) == used
        await owner.execute("UPDATE oauth_clients SET created_at = created_at - interval '25 hours'")
        await clients.register(db, name="later", uri=None, uris=["http://localhost/cb"], refreshes=True)
        assert await owner.fetchval("SELECT count(*) FROM oauth_clients") == 2, "who never came back is forgotten"
        assert await clients.find_client(db, used.id) == used

    @pytest.mark.proves("security: client-registration")
    async def test_new_clients_do_not_displace_those_in_use(self, db: Database, owner: asyncpg.Connection) -> None:
        await owner.execute("DELETE FROM oauth_clients")
        used = await clients.register(db, name="used", uri=None, uris=["http://localhost/cb"], refreshes=True)
        await owner.execute("UPDATE oauth_clients SET created_at = now() - interval '90 days'")
        await clients.note_used(db, used.id)
        await owner.execute("UPDATE oauth_clients SET last_used_at = now() - interval '23 hours'")
        await owner.execute(
            """INSERT INTO oauth_clients (id, kind, name, redirect_uris, refreshes, last_used_at)
            SELECT 'https://evil.example/' || n, 'document', 'n', '{https://evil.example/cb}', true, now()
            FROM generate_series(1, 10500) n"""
        )
        new = [
            await clients.register(db, name="new", uri=None, uris=["http://localhost/cb"], refreshes=True)
            for _ in range(3)
        ]
        assert await owner.fetchval("SELECT count(*) FROM oauth_clients") == 9_003
        for each in (used, *new):
            assert await clients.find_client(db, each.id) == each
        await owner.execute("DELETE FROM oauth_clients")

    async def test_invalid_metadata_writes_nothing(self, db: Database, owner: asyncpg.Connection) -> None:
        before = await owner.fetchval("SELECT count(*) FROM oauth_clients")
        with pytest.raises(InvalidInput):
            await clients.register(db, name="x", uri=None, uris=["http://evil.example/cb"], refreshes=True)
        assert await owner.fetchval("SELECT count(*) FROM oauth_clients") == before


@pytest.fixture
async def no_keys(owner: asyncpg.Connection) -> None:
    await owner.execute("DELETE FROM signing_keys")


@pytest.mark.usefixtures("no_keys")
class TestSigning:
    vault = Vault.of(b"a secret")

    async def test_signatures_can_be_verified_with_the_public_keys(
        self, db: Database, owner: asyncpg.Connection
    ) -> None:
        signed = await signing.sign(db, self.vault, {"sub": "ada"})
        published = await signing.public_keys(db)
        assert (
            jwt.decode(signed, KeySet.import_key_set({"keys": published}), algorithms=["ES256"]).claims["sub"] == "ada"
        )
        assert all("d" not in key for key in published)
        with pytest.raises((BadSignatureError, ValueError)):
            jwt.decode(signed, ECKey.generate_key("P-256"), algorithms=["ES256"])
        stored = await owner.fetchval("SELECT string_agg(private_key::text, '') FROM signing_keys")
        assert b'"d"'.hex() not in stored, "the private part is encrypted"

    async def test_gateways_that_start_concurrently_make_one_key(self, db: Database, owner: asyncpg.Connection) -> None:
        await asyncio.gather(*(signing.sign(db, self.vault, {}) for _ in range(6)))
        assert await owner.fetchval("SELECT count(*) FROM signing_keys") == 1

    async def test_an_old_key_is_replaced_and_stays_published(self, db: Database, owner: asyncpg.Connection) -> None:
        first = key_id(before := await signing.sign(db, self.vault, {}))
        await owner.execute("UPDATE signing_keys SET created_at = now() - interval '31 days'")
        assert key_id(await signing.sign(db, self.vault, {})) == first, "the new one is published before it signs"
        assert len(await signing.public_keys(db)) == 2
        await owner.execute("UPDATE signing_keys SET created_at = created_at - interval '6 minutes'")
        assert key_id(await signing.sign(db, self.vault, {})) != first
        jwt.decode(before, KeySet.import_key_set({"keys": await signing.public_keys(db)}), algorithms=["ES256"])

    async def test_a_new_secret_makes_a_new_key(self, db: Database, owner: asyncpg.Connection) -> None:
        await signing.sign(db, self.vault, {})
        await signing.sign(db, Vault.of(b"another"), {})
        assert await owner.fetchval("SELECT count(*) FROM signing_keys") == 2
        for number in range(9):
            await signing.sign(db, Vault.of(bytes([number])), {})
        assert await owner.fetchval("SELECT count(*) FROM signing_keys") == 5

    async def test_a_key_of_another_secret_or_id_cannot_be_opened(self) -> None:
        stored = self.vault.new_key()
        self.vault.open(stored)
        for vault, key in ((Vault.of(b"another"), stored), (self.vault, replace(stored, id="forged"))):
            with pytest.raises(ValueError, match="not of this secret"):
                vault.open(key)


def key_id(signed: str) -> str:
    """The id of the key that signed."""
    encoded = signed.split(".")[0]
    return str(json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))["kid"])
