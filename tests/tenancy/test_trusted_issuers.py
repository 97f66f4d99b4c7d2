"""Trusted issuers are isolated by tenant, and work in their name ends with the trust."""

from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.oauth.issuers import service as trusted
from recollect.accounts.oauth.issuers.model import IssuerChange
from recollect.errors import ErrorCode, NotFound, Unauthenticated
from recollect.postgres.database import Database
from tests.tenancy.conftest import Neighbour

Neighbours = tuple[Neighbour, Neighbour]
ISSUER = "https://login.example.com"


async def issuer_of(db: Database, neighbour: Neighbour) -> UUID:
    async with db.transaction(neighbour.caller, read_only=True) as tx:
        (found,) = await trusted.list_issuers(tx)
    return found.id


async def test_an_issuer_of_another_tenant_is_neither_changed_nor_deleted(db: Database, neighbours: Neighbours) -> None:
    mine, other = neighbours
    told = set()
    for issuer_id in (await issuer_of(db, other), uuid4()):
        async with db.transaction(mine.caller) as tx:
            with pytest.raises(NotFound) as refused:
                await trusted.change_issuer(tx, issuer_id, IssuerChange(enabled=False))
            told.add((str(refused.value), refused.value.code))
            with pytest.raises(NotFound) as refused:
                await trusted.delete_issuer(tx, issuer_id)
            told.add((str(refused.value), refused.value.code))
    assert told == {("There is no such issuer.", ErrorCode.ISSUER_NOT_FOUND)}


async def test_an_issuer_is_found_only_by_tenant_and_address_together(
    attacker: asyncpg.Connection, db: Database, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    asked = "SELECT tenant_id, id FROM recollect.find_trusted_issuer($1, $2)"
    for neighbour in neighbours:
        (found,) = await attacker.fetch(asked, neighbour.caller.tenant, ISSUER)
        assert tuple(found) == (neighbour.caller.tenant_id, await issuer_of(db, neighbour))
    for hostile in ((None, ISSUER), (mine.caller.tenant, None), ("%", "%"), (mine.caller.tenant, ISSUER + "/")):
        assert await attacker.fetch(asked, *hostile) == []
    await owner.execute("UPDATE trusted_issuers SET disabled_at = now() WHERE tenant_id = $1", mine.caller.tenant_id)
    assert await attacker.fetch(asked, mine.caller.tenant, ISSUER) == []
    listed = "SELECT issuer FROM recollect.list_trusted_issuers($1)"
    assert await attacker.fetch(listed, mine.caller.tenant) == []
    assert [row[0] for row in await attacker.fetch(listed, other.caller.tenant)] == [ISSUER]
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", other.caller.tenant_id)
    assert await attacker.fetch(listed, other.caller.tenant) == []


@pytest.mark.proves("security: disabled-issuers")
async def test_work_goes_on_only_for_an_issuer_that_the_tenant_trusts(db: Database, neighbours: Neighbours) -> None:
    mine, other = neighbours
    own, foreign = [f"issuer:{await issuer_of(db, each)}:agent:7" for each in neighbours]
    async with db.transaction(mine.caller) as tx:
        await identity.require_subject_active(tx, own)
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, foreign)
        await trusted.change_issuer(tx, await issuer_of(db, mine), IssuerChange(enabled=False))
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, own)
    async with db.transaction(other.caller, read_only=True) as tx:
        await identity.require_subject_active(tx, foreign)
