"""Claims of domains are isolated by tenant, except that one tenant can verify a domain, until its proof is old."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.tenancy.conftest import Neighbour

Neighbours = tuple[Neighbour, Neighbour]
DOMAIN = "example.com"


@pytest.fixture
async def proven(neighbours: Neighbours, owner: asyncpg.Connection) -> AsyncIterator[Neighbours]:
    """The second tenant has verified the domain that both claim."""
    await owner.execute("UPDATE email_domains SET verified_at = NULL")
    await owner.execute(
        "UPDATE email_domains SET verified_at = now(), checked_at = now() WHERE tenant_id = $1",
        neighbours[1].caller.tenant_id,
    )
    yield neighbours
    await owner.execute("UPDATE email_domains SET verified_at = NULL")


async def verified(owner: asyncpg.Connection, neighbour: Neighbour) -> bool:
    asked = "SELECT verified_at IS NOT NULL FROM email_domains WHERE tenant_id = $1"
    return bool(await owner.fetchval(asked, neighbour.caller.tenant_id))


@pytest.mark.proves("security: one-tenant-per-domain")
async def test_only_one_tenant_can_verify_a_domain(
    attacker: asyncpg.Connection, proven: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = proven
    await attacker.execute(f"SET recollect.tenant_id = '{mine.caller.tenant_id}'")
    with pytest.raises(asyncpg.UniqueViolationError):
        await attacker.execute("UPDATE email_domains SET verified_at = now()")
    assert await attacker.fetchval("SELECT release_email_domain($1)", DOMAIN) is False
    assert await verified(owner, other)


@pytest.mark.proves("security: one-tenant-per-domain")
async def test_only_a_claimant_of_a_domain_can_release_an_old_proof(
    attacker: asyncpg.Connection, proven: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = proven
    await owner.execute("UPDATE email_domains SET checked_at = now() - interval '8 days'")
    for hostile in (DOMAIN, None, "", "%"):
        await attacker.fetchval("SELECT release_email_domain($1)", hostile)
    assert await verified(owner, other), "nobody has said who asks"
    await owner.execute("UPDATE email_domains SET domain = 'mine.example' WHERE tenant_id = $1", mine.caller.tenant_id)
    await attacker.execute(f"SET recollect.tenant_id = '{mine.caller.tenant_id}'")
    assert await attacker.fetchval("SELECT release_email_domain($1)", DOMAIN) is False
    assert await verified(owner, other), "who asks claims another one"
    await owner.execute("UPDATE email_domains SET domain = $2 WHERE tenant_id = $1", mine.caller.tenant_id, DOMAIN)
    assert await attacker.fetchval("SELECT release_email_domain($1)", DOMAIN) is True
    assert not await verified(owner, other)


async def test_only_a_verified_domain_returns_its_tenant(
    attacker: asyncpg.Connection, proven: Neighbours, owner: asyncpg.Connection
) -> None:
    asked = "SELECT tenant FROM recollect.find_email_domain($1)"
    assert [row[0] for row in await attacker.fetch(asked, DOMAIN)] == [proven[1].caller.tenant]
    for hostile in (None, "", "%", "EXAMPLE.COM", "com"):
        assert await attacker.fetch(asked, hostile) == []
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", proven[1].caller.tenant_id)
    assert await attacker.fetch(asked, DOMAIN) == []
