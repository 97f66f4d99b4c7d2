"""Several processes of one client, each with a copy of its tokens: what they may do, and what still counts as theft."""

import asyncio
from dataclasses import dataclass

import asyncpg
import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from recollect.accounts.identity.model import hash_secret
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import (
    CODE_REPEATS,
    MAX_REFRESH_TOKENS,
    MAX_REMEMBERED_TOKENS,
    IssuedTokens,
    authorization_server,
)
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.ids import new_id
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.integration.accounts.test_oauth import CLIENT, PEPPER, TIMES, Household
from tests.support.people import joined

VERIFIER = "a verifier of forty-three characters or more"


@pytest.fixture
async def ada(db: Database, databases: Databases, caller: Caller) -> Household:
    person = await joined(databases, caller, Role.ADMIN, pepper=PEPPER)
    return Household(db, caller, person, Role.ADMIN)


@dataclass(frozen=True)
class Reloading:
    """A client whose callback page sends its code."""

    ada: Household
    code: str

    async def redeem(self, verifier: str | None = VERIFIER) -> IssuedTokens | None:
        async with self.ada.db.transaction(authorization_server(self.ada.caller.tenant_id)) as tx:
            presented = await grants.present_code(tx, self.code, CLIENT, verifier=verifier, pepper=PEPPER)
            if presented is None:
                return None
            return await grants.redeem_code(tx, presented, refreshes=True, times=TIMES, pepper=PEPPER)


@pytest.fixture
async def reloading(ada: Household) -> Reloading:
    return Reloading(ada, await ada.approve(code_challenge=create_s256_code_challenge(VERIFIER)))


async def later(owner: asyncpg.Connection, token: str | None, seconds: float) -> None:
    """Let the use of a refresh token be so many seconds ago."""
    assert token is not None
    await owner.execute(
        "UPDATE oauth_refresh_tokens SET used_at = used_at - $2::float8 * interval '1 second' WHERE hash = $1",
        hash_secret(token, PEPPER),
        seconds,
    )


def test_the_default_grace_is_longer_than_an_access_token_lasts() -> None:
    assert TIMES.grace > TIMES.access
    with pytest.raises(ValueError, match="43200"):
        Settings(oauth_refresh_grace_seconds=43_201)


async def test_a_second_process_may_come_when_its_access_token_has_expired(
    ada: Household, owner: asyncpg.Connection
) -> None:
    issued = await ada.tokens()
    first = await ada.refresh(issued.refresh)
    await later(owner, issued.refresh, TIMES.access.total_seconds() + 60)
    second = await ada.refresh(issued.refresh)
    assert first is not None
    assert second is not None
    for session in (first, second):
        assert await ada.holds(session)
        assert await ada.refresh(session.refresh) is not None


@pytest.mark.proves("security: reuse-after-grace")
async def test_a_refresh_token_that_comes_after_the_grace_still_ends_the_grant(
    ada: Household, owner: asyncpg.Connection
) -> None:
    issued = await ada.tokens()
    first = await ada.refresh(issued.refresh)
    assert first is not None
    await later(owner, issued.refresh, TIMES.grace.total_seconds() + 1)
    assert await ada.refresh(issued.refresh) is None
    assert not await ada.holds(first)


async def test_a_reloaded_page_ends_nothing(reloading: Reloading) -> None:
    answers = await asyncio.gather(*(reloading.redeem() for _ in range(4)))
    (winner,) = [answer for answer in answers if answer is not None]
    assert await reloading.ada.holds(winner)
    assert await reloading.ada.refresh(winner.refresh) is not None


@pytest.mark.proves("security: reuse-after-grace")
async def test_a_used_code_without_its_verifier_or_later_ends_the_grant(
    ada: Household, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for verifier, seconds in ((None, 0.0), ("another", 0.0), (VERIFIER, CODE_REPEATS.total_seconds() + 1)):
        with subtests.test(verifier=verifier, seconds=seconds):
            reloading = Reloading(ada, await ada.approve(code_challenge=create_s256_code_challenge(VERIFIER)))
            issued = await reloading.redeem()
            assert issued is not None
            await owner.execute(
                "UPDATE oauth_codes SET used_at = used_at - $2::float8 * interval '1 second' WHERE hash = $1",
                hash_secret(reloading.code, PEPPER),
                seconds,
            )
            assert await reloading.redeem(verifier) is None
            assert not await ada.holds(issued)


@pytest.mark.proves("security: bounded-tokens")
async def test_a_grant_has_a_bounded_number_of_unused_refresh_tokens_and_the_oldest_end(
    ada: Household, owner: asyncpg.Connection
) -> None:
    issued = await ada.tokens()
    siblings = [await ada.refresh(issued.refresh) for _ in range(20)]
    children = [await ada.refresh(sibling.refresh) for sibling in siblings[-4:] if sibling for _ in range(15)]
    unused = await owner.fetchval(
        "SELECT count(*) FROM oauth_refresh_tokens WHERE tenant_id = $1 AND used_at IS NULL", ada.caller.tenant_id
    )
    assert unused == MAX_REFRESH_TOKENS
    oldest, newest = children[0], children[-1]
    assert oldest is not None
    assert newest is not None
    assert await ada.refresh(oldest.refresh) is None
    assert await ada.holds(newest), "which ends nothing else"
    assert await ada.refresh(newest.refresh) is not None


@pytest.mark.proves("security: bounded-tokens")
async def test_a_grant_stores_a_bounded_number_of_used_tokens(ada: Household, owner: asyncpg.Connection) -> None:
    issued = await ada.tokens()
    grant_id = await owner.fetchval("SELECT id FROM oauth_grants WHERE tenant_id = $1", ada.caller.tenant_id)
    rows = [(ada.caller.tenant_id, new_id(), grant_id, new_id().bytes) for _ in range(MAX_REMEMBERED_TOKENS + 10)]
    await owner.executemany(
        "INSERT INTO oauth_refresh_tokens (tenant_id, id, grant_id, hash, generation, expires_at, used_at, uses) "
        "VALUES ($1, $2, $3, $4, 1, now() + interval '1 day', now() - interval '2 hours', 1)",
        rows,
    )
    await owner.executemany(
        "INSERT INTO oauth_access_tokens (tenant_id, id, grant_id, hash, scopes, expires_at) "
        "VALUES ($1, $2, $3, $4, '{}', now() - interval '1 hour')",
        rows,
    )
    refreshed = await ada.refresh(issued.refresh)
    assert refreshed is not None
    assert await ada.holds(refreshed)
    counted = await owner.fetchrow(
        "SELECT (SELECT count(*) FROM oauth_access_tokens WHERE tenant_id = $1) AS access, "
        "(SELECT count(*) FROM oauth_refresh_tokens WHERE tenant_id = $1 AND used_at IS NOT NULL) AS used",
        ada.caller.tenant_id,
    )
    assert counted is not None
    assert dict(counted) == {"access": MAX_REMEMBERED_TOKENS, "used": MAX_REMEMBERED_TOKENS}
    assert await ada.refresh(issued.refresh) is not None, "the one that was used last is known"
