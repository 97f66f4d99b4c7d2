"""The SDK's own OAuth client against the gateway: it gets from a 401 to a tool's answer by itself."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from recollect.accounts.identity.model import hash_secret
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.gateway import LEGACY, MODERN, RunningGateway, answer, serving
from tests.support.oauth import CALLBACK, HandClient, Visitor, Wallet, client_document, oauth_client
from tests.support.people import browser, joined
from tests.support.web_server import CertificateAuthority, trusted_authority

ENTITY = {"name": "Ada", "entityType": "person", "observations": []}


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def person(databases: Databases, caller: Caller, pepper: bytes) -> Person:
    return await joined(databases, caller, Role.MEMBER, pepper=pepper)


@pytest.fixture
async def visitor(gateway: RunningGateway, person: Person) -> AsyncIterator[Visitor]:
    async with browser(gateway) as http:
        yield Visitor(http, person.email)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_client_registers_gets_consent_and_calls(
    gateway: RunningGateway, visitor: Visitor, revision: str
) -> None:
    wallet = Wallet()
    async with oauth_client(gateway, visitor, wallet, revision=revision) as client:
        assert (await answer(client, "read_graph"))["entities"] == []
        assert (await answer(client, "create_entities", entities=[ENTITY]))["entities"][0]["name"] == "Ada"
    assert wallet.current_tokens.access_token.startswith("rcl_access_")
    async with oauth_client(gateway, visitor, wallet, revision=revision) as client:
        assert len((await answer(client, "read_graph"))["entities"]) == 1
    assert visitor.visits == 1, "nobody is asked again"


async def test_a_client_can_use_a_tenants_own_address(
    gateway: RunningGateway, visitor: Visitor, caller: Caller
) -> None:
    wallet = Wallet()
    async with oauth_client(gateway, visitor, wallet, path=f"/t/{caller.tenant}/mcp/x/memory") as client:
        assert (await answer(client, "read_graph"))["entities"] == []
    async with gateway.http(wallet.current_tokens.access_token) as http:
        assert (await http.post("/mcp", json={})).status_code == 401


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CertificateAuthority]:
    """An authority that is trusted by gateways that start from now on."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield trusted_authority(tmp_path_factory.mktemp("authority"), monkeypatch)


@pytest.fixture(scope="module")
def near_gateway(settings: Settings, authority: CertificateAuthority) -> Iterator[RunningGateway]:
    """A gateway that may read documents on this machine."""
    changed = {"outbound_networks": ["127.0.0.0/8", "::1/128"]}
    with serving(settings.model_copy(update=changed)) as gateway:
        yield gateway


async def test_a_client_can_describe_itself_in_a_document(
    near_gateway: RunningGateway, person: Person, authority: CertificateAuthority, db: Database, caller: Caller
) -> None:
    async with (
        client_document(authority, client_name="Described") as (client_id, site),
        browser(near_gateway) as http,
    ):
        visitor, wallet = Visitor(http, person.email), Wallet()
        async with oauth_client(near_gateway, visitor, wallet, metadata_url=client_id) as client:
            assert (await answer(client, "read_graph"))["entities"] == []
        assert "Described" in visitor.shown
        assert "localhost" in visitor.shown
        assert site.connections == 1, "it is read once, and counts for as long as it says"
        assert "cookie" not in site.heads()[0]
        wallet.make_stale()
        async with oauth_client(near_gateway, visitor, wallet, metadata_url=client_id) as client:
            await answer(client, "read_graph")
        assert (visitor.visits, site.connections) == (1, 1), "refreshing reads nothing"
    async with db.transaction(caller, read_only=True) as tx:
        (grant,) = await grants.list_grants(tx)
    assert (grant.client_id, grant.client_name) == (client_id, "Described")


BAD_DOCUMENTS: dict[str, dict[str, Any]] = {
    "of another": {"client_id": "https://localhost/other.json"},
    "without a name": {"client_name": None},
    "without addresses": {"redirect_uris": []},
    "with another's address": {"redirect_uris": ["http://evil.example/cb"]},
    "with a secret": {"client_secret": "x"},
    "with a key": {"token_endpoint_auth_method": "private_key_jwt"},
    "of something else": {"grant_types": ["client_credentials"]},
}


@pytest.mark.parametrize("fault", BAD_DOCUMENTS)
async def test_a_client_with_an_invalid_document_is_refused(
    near_gateway: RunningGateway, person: Person, authority: CertificateAuthority, owner: asyncpg.Connection, fault: str
) -> None:
    path = f"/oauth/{fault.replace(' ', '-').replace(chr(39), '')}.json"
    async with (
        client_document(authority, path, **BAD_DOCUMENTS[fault]) as (client_id, site),
        browser(near_gateway) as http,
    ):
        visitor = Visitor(http, person.email)
        client = HandClient(near_gateway, http, client_id, redirect_uri=CALLBACK)
        refused = await http.get(client.request())
        assert refused.status_code == 303, "a stranger has us read nothing"
        assert site.connections == 0
        with pytest.raises(AssertionError, match="The description of the client is not valid"):
            await visitor.visit(client.request())
    assert await owner.fetchval("SELECT count(*) FROM oauth_clients WHERE id = $1", client_id) == 0


async def test_unreadable_documents_are_refused_the_same_way(gateway: RunningGateway, visitor: Visitor) -> None:
    """The gateway of the test run cannot reach anything on this machine."""
    for client_id in ("https://127.0.0.1/x.json", "https://localhost:1/x.json", "https://nobody.invalid/x.json"):
        client = HandClient(gateway, visitor.http, client_id, redirect_uri=CALLBACK)
        with pytest.raises(AssertionError, match="at the address that is its id could not be read"):
            await visitor.visit(client.request())


async def test_parallel_sessions_of_one_client_stay_signed_in(gateway: RunningGateway, visitor: Visitor) -> None:
    wallet = Wallet()
    async with oauth_client(gateway, visitor, wallet) as client:
        await answer(client, "read_graph")
    sessions = [replace(wallet) for _ in range(4)]
    for session in sessions:
        session.make_stale()

    async def reads(session: Wallet) -> None:
        async with oauth_client(gateway, visitor, session) as client:
            await answer(client, "read_graph")

    for _ in range(2):
        await asyncio.gather(*(reads(session) for session in sessions))
        for session in sessions:
            session.make_stale()
    assert visitor.visits == 1
    assert len({session.current_tokens.refresh_token for session in sessions}) == 4


async def test_a_stolen_refresh_token_ends_the_grant(
    gateway: RunningGateway, visitor: Visitor, owner: asyncpg.Connection, pepper: bytes
) -> None:
    wallet = Wallet()
    async with oauth_client(gateway, visitor, wallet) as client:
        await answer(client, "read_graph")
    stolen = wallet.current_tokens.refresh_token or ""
    wallet.make_stale()
    async with oauth_client(gateway, visitor, wallet) as client:
        await answer(client, "read_graph")
    assert visitor.visits == 1
    await owner.execute(
        "UPDATE oauth_refresh_tokens SET used_at = used_at - interval '61 minutes' WHERE hash = $1",
        hash_secret(stolen, pepper),
    )
    assert wallet.client is not None
    async with gateway.http() as http:
        tried = await HandClient(gateway, http, wallet.client.client_id).refresh(stolen)
    assert (tried.status_code, tried.json()["error"]) == (400, "invalid_grant")
    wallet.make_stale()
    async with oauth_client(gateway, visitor, wallet) as client:
        await answer(client, "read_graph")
    assert visitor.visits == 2, "the person is asked again"


async def test_after_a_revoked_grant_the_person_is_asked_again(
    gateway: RunningGateway, visitor: Visitor, admin_key: str
) -> None:
    wallet = Wallet()
    async with (
        oauth_client(gateway, visitor, wallet) as client,
        gateway.http(admin_key) as admin,
    ):
        await answer(client, "read_graph")
        (grant,) = (await admin.get("/v1/grants")).json()["items"]
        assert grant["client_name"] == "Test client"
        assert grant["person"]["email"] == visitor.email
        assert (await admin.delete(f"/v1/grants/{grant['id']}")).json()["revoked_at"]
        visitor.chosen = {"decision": "allow", "scope": "memory:read"}
        await answer(client, "read_graph")
        assert visitor.visits == 2
        items = (await admin.get("/v1/grants", params={"person": grant["person"]["id"]})).json()["items"]
    assert [(each["scopes"], each["revoked_at"] is None) for each in items] == [
        (["memory:read", "memory:write", "offline_access"], False),
        (["memory:read", "offline_access"], True),
    ]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_call_beyond_the_granted_scopes_causes_a_step_up(
    gateway: RunningGateway, visitor: Visitor, revision: str
) -> None:
    visitor.chosen = {"decision": "allow", "scope": "memory:read"}
    wallet = Wallet()
    async with oauth_client(gateway, visitor, wallet, revision=revision) as client:
        assert "create_entities" not in {tool.name for tool in (await client.list_tools()).tools}
        assert "memory:write" not in (wallet.current_tokens.scope or "")
        visitor.chosen = {"decision": "allow"}
        assert (await answer(client, "create_entities", entities=[ENTITY]))["entities"][0]["name"] == "Ada"
        assert visitor.visits == 2
        assert {"memory:read", "memory:write"} <= set((wallet.current_tokens.scope or "").split())
