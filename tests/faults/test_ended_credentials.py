"""Credentials that were issued here and have ended are no guesses: many of them lock no address that people share."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import asyncpg
import httpx2
import pytest
from redis.asyncio import Redis

from recollect.accounts.identity.model import generate_secret, hash_secret
from recollect.accounts.people import sessions
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.ids import new_id
from recollect.settings import Settings
from recollect_local.valkey import LocalValkey
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers, serving
from tests.support.oauth import HandClient, Visitor, granted
from tests.support.people import BROWSER, browser, joined
from tests.support.timeouts import MAX_WAIT_SECONDS

ALLOWED = 6
MANY = 75
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    """A Valkey for this file: all tests of a run have one address."""
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def strict(settings: Settings, valkey: LocalValkey) -> Iterator[RunningGateway]:
    """A gateway that allows few failures."""
    few = {"failed_keys_per_minute": ALLOWED, "redis_url": valkey.url, "rate_limit_wait_seconds": MAX_WAIT_SECONDS}
    with serving(settings.model_copy(update=few)) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
async def no_failures(valkey: LocalValkey) -> None:
    """No failure has happened yet."""
    async with Redis.from_url(valkey.url) as redis:
        await redis.flushall()


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@dataclass(frozen=True)
class Connected:
    """A person whose client has tokens, and the person's browser."""

    client: HandClient
    visitor: Visitor
    person_id: str


@pytest.fixture
async def connected(
    strict: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
) -> AsyncIterator[Connected]:
    person = await joined(databases, caller, Role.MEMBER, pepper=pepper)
    async with browser(strict) as http, strict.http() as web:
        client = await HandClient.register(strict, web)
        yield Connected(client, Visitor(http, person.email), str(person.id))


async def ask(gateway: RunningGateway, secret: str) -> httpx2.Response:
    async with gateway.http(secret) as http:
        return await http.post("/mcp", json=LIST_TOOLS, headers=rpc_headers())


async def issue_tokens(
    owner: asyncpg.Connection, caller: Caller, connected: Connected, gateway: RunningGateway, pepper: bytes
) -> list[str]:
    """Access tokens of a grant, as its client got them over the hours."""
    grant_id = await granted(owner, caller.tenant_id, connected.person_id)
    await owner.execute("UPDATE oauth_grants SET resource = $2 WHERE id = $1", grant_id, f"{gateway.url}/mcp")
    tokens = [generate_secret("access") for _ in range(MANY)]
    await owner.executemany(
        "INSERT INTO oauth_access_tokens (tenant_id, id, grant_id, hash, scopes, expires_at) "
        "VALUES ($1, $2, $3, $4, '{memory:read}', now() + interval '1 hour')",
        [(caller.tenant_id, new_id(), grant_id, hash_secret(token, pepper)) for token in tokens],
    )
    return tokens


@pytest.mark.proves("security: ended-credentials")
async def test_tokens_that_expired_or_whose_grant_ended_lock_nobody_out(
    strict: RunningGateway,
    connected: Connected,
    caller: Caller,
    owner: asyncpg.Connection,
    pepper: bytes,
    subtests: pytest.Subtests,
) -> None:
    for ended, how in (
        ("UPDATE oauth_access_tokens SET expires_at = now() - interval '1 second' WHERE tenant_id = $1", "expired"),
        ("UPDATE oauth_grants SET revoked_at = now(), revoked_by = 'client' WHERE tenant_id = $1", "ended"),
    ):
        with subtests.test(how):
            tokens = await issue_tokens(owner, caller, connected, strict, pepper)
            assert (await ask(strict, tokens[0])).status_code == 200
            await owner.execute(ended, caller.tenant_id)
            answers = [await ask(strict, token) for token in tokens[1:]]
            assert {answer.status_code for answer in answers} == {401}
            fresh = await connected.client.tokens(connected.visitor)
            assert (await ask(strict, fresh["access_token"])).status_code == 200


async def test_a_token_that_its_client_has_refreshed_is_known_for_a_day(
    strict: RunningGateway, connected: Connected, caller: Caller, owner: asyncpg.Connection
) -> None:
    """A second process of the client goes on using it."""
    tokens = await connected.client.tokens(connected.visitor)
    age = "UPDATE oauth_access_tokens SET expires_at = now() - $2::text::interval WHERE tenant_id = $1"
    await owner.execute(age, caller.tenant_id, "23 hours")
    assert (await connected.client.refresh(tokens["refresh_token"])).status_code == 200
    refused = await ask(strict, tokens["access_token"])
    assert (
        'error="invalid_token", error_description="The access token has expired.' in refused.headers["WWW-Authenticate"]
    )
    await owner.execute(age, caller.tenant_id, "25 hours")
    assert (await connected.client.refresh(tokens["refresh_token"])).status_code == 200
    left = "SELECT count(*) FROM oauth_access_tokens WHERE tenant_id = $1 AND expires_at < now()"
    assert await owner.fetchval(left, caller.tenant_id) == 0


@pytest.mark.proves("security: ended-credentials")
async def test_only_an_expired_access_token_is_told_why(
    strict: RunningGateway, connected: Connected, caller: Caller, owner: asyncpg.Connection, issue: NewApiKey
) -> None:
    """Also when it is sent again a moment later. Any other refusal looks like that of a made-up one."""
    access = (await connected.client.tokens(connected.visitor))["access_token"]
    await owner.execute("UPDATE oauth_access_tokens SET expires_at = now() WHERE tenant_id = $1", caller.tenant_id)
    for _ in range(2):
        refused = await ask(strict, access)
        assert "expired" in refused.json()["detail"]
        assert "error_description" in refused.headers["WWW-Authenticate"]
    revoked = (await issue(caller)).secret
    await owner.execute("UPDATE api_keys SET revoked_at = now() WHERE tenant_id = $1", caller.tenant_id)
    others = [await ask(strict, secret) for secret in (revoked, generate_secret("agent"), generate_secret("access"))]
    assert len({(answer.content, answer.headers["WWW-Authenticate"]) for answer in others}) == 1


async def test_keys_that_were_revoked_expired_or_rotated_lock_nobody_out(
    strict: RunningGateway, caller: Caller, owner: asyncpg.Connection, issue: NewApiKey, subtests: pytest.Subtests
) -> None:
    for ended in ("revoked_at = now()", "expires_at = now()"):
        with subtests.test(ended):
            secrets = [(await issue(caller)).secret for _ in range(ALLOWED + 4)]
            await owner.execute(f"UPDATE api_keys SET {ended} WHERE tenant_id = $1", caller.tenant_id)
            assert {(await ask(strict, secret)).status_code for secret in secrets} == {401}
            assert (await ask(strict, (await issue(caller)).secret)).status_code == 200


async def test_sessions_that_ended_lock_nobody_out(
    strict: RunningGateway, connected: Connected, databases: Databases, pepper: bytes, caller: Caller
) -> None:
    person = connected.person_id
    for _ in range(ALLOWED + 4):
        issued = await sessions.begin_session(databases, person, BROWSER, pepper=pepper)  # type: ignore[arg-type]
        await sessions.end_session(databases, issued.person_id, issued.id, within=None)
        async with strict.http() as http:
            http.cookies.set("recollect_session", issued.secret)
            assert (await http.get("/account")).status_code == 303
    assert (await connected.client.tokens(connected.visitor))["access_token"]


async def test_keys_of_a_suspended_tenant_and_tokens_for_another_resource_lock_nobody_out(
    strict: RunningGateway, connected: Connected, caller: Caller, owner: asyncpg.Connection, issue: NewApiKey
) -> None:
    access = (await connected.client.tokens(connected.visitor))["access_token"]
    async with strict.http(access) as http:
        for _ in range(ALLOWED + 2):
            assert (await http.get("/v1/keys")).status_code == 401
            assert (await http.post(f"/t/{caller.tenant}/mcp", content="{}")).status_code == 401
    secrets = [(await issue(caller)).secret for _ in range(ALLOWED + 2)]
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", caller.tenant_id)
    assert {(await ask(strict, secret)).status_code for secret in secrets} == {401}
    await owner.execute("UPDATE tenants SET status = 'active' WHERE id = $1", caller.tenant_id)
    assert (await ask(strict, (await issue(caller)).secret)).status_code == 200


@pytest.mark.proves("security: ended-credentials")
async def test_made_up_ones_still_count(strict: RunningGateway, caller: Caller, issue: NewApiKey) -> None:
    kinds = ["agent", "access", "admin"] * ALLOWED
    answers = [(await ask(strict, generate_secret(kind))).status_code for kind in kinds]
    assert answers == [401] * ALLOWED + [429] * (len(kinds) - ALLOWED)
