"""Keys on a real database: the caller that a key stands for, and refusals, which all look alike."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey, NewKey, generate_secret, hash_secret
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Rates, Scope
from recollect.cells.databases import Databases
from recollect.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator

PEPPER = b"a pepper of the tests"


async def issue(db: Database, caller: Caller, new: NewKey) -> IssuedKey:
    async with db.transaction(caller) as tx:
        return await identity.create_key(tx, new, pepper=PEPPER)


@pytest.fixture
async def key(db: Database, caller: Caller) -> IssuedKey:
    return await issue(db, caller, NewKey("laptop"))


async def test_a_key_stands_for_its_tenant(databases: Databases, caller: Caller, key: IssuedKey) -> None:
    assert await identity.authenticate(databases, key.secret, pepper=PEPPER) == Caller(
        tenant_id=caller.tenant_id,
        tenant=caller.tenant,
        subject=f"key:{key.key.id}",
        scopes=frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}),
        plan="unlimited",
        rates=Rates(),
    )


@pytest.mark.parametrize(
    ("new", "scopes"),
    [
        (NewKey("k", kind="admin"), set(Scope)),
        (NewKey("k", kind="agent"), {Scope.MEMORY_READ, Scope.MEMORY_WRITE}),
        (NewKey("k", kind="admin", scopes=frozenset({Scope.MEMORY_READ})), {Scope.MEMORY_READ}),
        (NewKey("k", scopes=frozenset()), set()),
    ],
)
async def test_a_key_has_the_requested_scopes_or_those_of_its_kind(
    db: Database, databases: Databases, caller: Caller, new: NewKey, scopes: set[Scope]
) -> None:
    issued = await issue(db, caller, new)
    assert (await identity.authenticate(databases, issued.secret, pepper=PEPPER)).scopes == scopes


async def test_a_key_keeps_its_graphs_after_a_rename(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    async with db.transaction(caller) as tx:
        graph = await graphs.create_graph(tx, NewGraph("notes"))
    issued = await issue(db, caller, NewKey("k", graph_ids=(graph.id,), default_graph_id=graph.id))
    await owner.execute("UPDATE graphs SET name = 'diary' WHERE id = $1", graph.id)
    known = await identity.authenticate(databases, issued.secret, pepper=PEPPER)
    assert (known.graphs, known.default_graph) == (frozenset([graph.id]), "diary")


@pytest.mark.proves("security: keys-make-no-stronger-keys")
async def test_a_key_reaches_no_more_graphs_than_its_creator(db: Database, caller: Caller) -> None:
    async with db.transaction(caller) as tx:
        mine, other = [(await graphs.create_graph(tx, NewGraph(name))).id for name in ("mine", "other")]
    narrow = replace(caller, graphs=frozenset([mine]))
    assert (await issue(db, narrow, NewKey("k", graph_ids=(mine,)))).key.graph_ids == (mine,)
    for reach in (None, (other,), (mine, other)):
        with pytest.raises(Forbidden):
            await issue(db, narrow, NewKey("k", graph_ids=reach))


@pytest.mark.proves("security: keys-make-no-stronger-keys")
async def test_a_key_expires_no_later_than_its_creator(db: Database, databases: Databases, caller: Caller) -> None:
    end = datetime.now(UTC) + timedelta(days=1)
    maker = await issue(db, caller, NewKey("k", kind="admin", expires_at=end))
    ending = await identity.authenticate(databases, maker.secret, pepper=PEPPER)
    assert ending.expires_at == maker.key.expires_at
    for earlier in (end, end - timedelta(hours=1)):
        assert (await issue(db, ending, NewKey("k", expires_at=earlier))).key.expires_at == earlier
    for later in (None, end + timedelta(microseconds=1), end + timedelta(days=365)):
        with pytest.raises(Forbidden) as refused:
            await issue(db, ending, NewKey("k", expires_at=later))
        assert (refused.value.code, refused.value.path) == ("expiry_exceeded", "expires_at")


@pytest.mark.proves("security: keys-make-no-stronger-keys")
async def test_a_key_has_no_scope_that_its_creator_lacks(db: Database, caller: Caller) -> None:
    only_admin = replace(caller, scopes=frozenset({Scope.TENANT_ADMIN}))
    assert (await issue(db, only_admin, NewKey("k", scopes=frozenset({Scope.TENANT_ADMIN})))).key.scopes
    for new in (NewKey("k"), NewKey("k", kind="admin"), NewKey("k", scopes=frozenset({Scope.MEMORY_READ}))):
        with pytest.raises(Forbidden):
            await issue(db, only_admin, new)


MALFORMED = {
    "empty": "",
    "blank": " ",
    "of another house": "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "of a kind that there is not": "rcl_owner_" + "0" * 38,
    "cut": "rcl_agent_" + "0" * 37,
    "long": "rcl_agent_" + "0" * 100_000,
    "with a false checksum": "rcl_agent_" + "0" * 38,
    "not ASCII": "rcl_agent_" + "é" * 38,
    "digits of another script": "rcl_agent_" + "٣" * 38,
    "NUL": "rcl_agent_\x00" + "0" * 37,
    "a lone surrogate": "\ud800",
    "SQL": "' OR true --",
}


async def refusal(databases: Databases, secret: str, pepper: bytes = PEPPER) -> tuple[object, ...]:
    with pytest.raises(Unauthenticated) as refused:
        await identity.authenticate(databases, secret, pepper=pepper)
    error = refused.value
    return error.kind, error.code, error.message, error.path


@pytest.mark.proves("security: refusals-look-alike")
async def test_every_refusal_looks_alike(
    db: Database,
    databases: Databases,
    caller: Caller,
    owner: asyncpg.Connection,
    operator: Operator,
) -> None:
    revoked, expired, changed = [await issue(db, caller, NewKey("k")) for _ in range(3)]
    async with db.transaction(caller) as tx:
        await identity.revoke_key(tx, revoked.key.id)
    await owner.execute("UPDATE api_keys SET expires_at = now() WHERE id = $1", expired.key.id)
    refusals = {
        "revoked": await refusal(databases, revoked.secret),
        "expired": await refusal(databases, expired.secret),
        "unknown": await refusal(databases, generate_secret("agent")),
        "of another pepper": await refusal(databases, changed.secret, b"another pepper"),
        "in another case": await refusal(databases, changed.secret.swapcase()),
        "with a blank": await refusal(databases, f"{changed.secret} "),
        "with a newline": await refusal(databases, f"{changed.secret}\n"),
        **{name: await refusal(databases, secret) for name, secret in MALFORMED.items()},
    }
    assert await identity.authenticate(databases, changed.secret, pepper=PEPPER)
    await tenants.suspend_tenant(operator, caller.tenant)
    refusals["of a suspended tenant"] = await refusal(databases, changed.secret)
    assert set(refusals.values()) == {refusals["unknown"]}, refusals
    await tenants.resume_tenant(operator, caller.tenant)
    assert await identity.authenticate(databases, changed.secret, pepper=PEPPER)


async def test_a_name_is_stored_without_surrounding_white_space(
    db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    """A key whose name is blank, as was possible once, can still be rotated."""
    named = await issue(db, caller, NewKey("  laptop of Ada "))
    assert named.key.name == "laptop of Ada"
    await owner.execute("UPDATE api_keys SET name = ' ' WHERE id = $1", named.key.id)
    async with db.transaction(caller) as tx:
        rotated = await identity.rotate_key(tx, named.key.id, overlap=timedelta(0), pepper=PEPPER)
    assert rotated.key.name == " "


async def test_a_key_expires_at_its_time(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    lasting, ended = [await issue(db, caller, NewKey("k", expires_at=soon)) for _ in range(2)]
    await owner.execute("UPDATE api_keys SET expires_at = $2 WHERE id = $1", ended.key.id, datetime.now(UTC))
    assert await identity.authenticate(databases, lasting.secret, pepper=PEPPER)
    await refusal(databases, ended.secret)


async def test_last_use_is_recorded_at_most_once_a_minute(
    db: Database, databases: Databases, caller: Caller, key: IssuedKey, owner: asyncpg.Connection
) -> None:
    """`note_use` is called only for keys that were not used just now, and whoever receives its calls writes them
    down.
    """
    told: dict[UUID, datetime] = {}

    def note(tenant_id: UUID, key_id: UUID, at: datetime) -> None:
        assert tenant_id == caller.tenant_id
        told[key_id] = at

    async def used(minutes_ago: float | None = None) -> datetime | None:
        if minutes_ago is not None:
            await owner.execute(
                "UPDATE api_keys SET last_used_at = now() - $2 * interval '1 minute' WHERE id = $1",
                key.key.id,
                minutes_ago,
            )
        last = "SELECT last_used_at FROM api_keys WHERE id = $1"
        before = await owner.fetchval(last, key.key.id)
        told.clear()
        await identity.authenticate(databases, key.secret, pepper=PEPPER, note_use=note)
        async with db.transaction(caller) as tx:
            await identity.note_used(tx, told)
        after: datetime | None = await owner.fetchval(last, key.key.id)
        return None if after == before else after

    assert await used() is not None
    assert await used() is None
    assert await used(minutes_ago=0.9) is None
    assert told == {}
    assert await used(minutes_ago=1.1) is not None


async def test_concurrent_records_of_last_use_do_not_wait(
    db: Database, caller: Caller, key: IssuedKey, owner: asyncpg.Connection
) -> None:
    """An older record does not replace a newer one."""
    now = datetime.now(UTC)
    last = "SELECT last_used_at FROM api_keys WHERE id = $1"
    async with db.transaction(caller) as one, db.transaction(caller) as other:
        await identity.note_used(one, {key.key.id: now})
        await identity.note_used(other, {key.key.id: now})
    async with db.transaction(caller) as tx:
        await identity.note_used(tx, {key.key.id: now - timedelta(minutes=5)})
    assert await owner.fetchval(last, key.key.id) == now


@pytest.mark.proves("security: keys-are-hashed")
async def test_the_secret_is_not_stored(key: IssuedKey, owner: asyncpg.Connection) -> None:
    """Neither whole, nor its random part, nor as bytes, but only its keyed hash, and the hint."""
    row = await owner.fetchrow("SELECT *, to_jsonb(k)::text AS whole FROM api_keys k WHERE id = $1", key.key.id)
    assert row is not None
    body = key.secret.rpartition("_")[2]
    for part in (key.secret, body, body[:8], key.secret.encode().hex(), body.encode().hex()):
        assert part not in row["whole"]
    assert row["hash"] == hash_secret(key.secret, PEPPER)
    assert row["hint"] == f"rcl_agent_…{key.secret[-4:]}"
    assert key.secret not in repr(key.key)


async def test_keys_are_listed_oldest_first_including_revoked_ones(db: Database, caller: Caller) -> None:
    issued = [(await issue(db, caller, NewKey(name))).key for name in ("a", "b", "c")]
    async with db.transaction(caller) as tx:
        void = await identity.revoke_key(tx, issued[1].id)
        assert void.revoked_at is not None
        assert await identity.revoke_key(tx, issued[1].id) == void
        assert await identity.list_keys(tx) == [issued[0], void, issued[2]]
        assert await identity.list_keys(tx, after=issued[0].id, limit=1) == [void]


async def test_an_unknown_key_is_not_found(db: Database, caller: Caller, key: IssuedKey) -> None:
    with pytest.raises(NotFound):
        async with db.transaction(caller) as tx:
            await identity.revoke_key(tx, caller.tenant_id)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "name"),
        ({"name": " \u3000 "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"kind": "owner"}, "kind"),
        ({"expires_at": datetime(2030, 1, 1)}, "expires_at"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expires_at"),
        ({"expires_at": datetime.now(UTC)}, "expires_at"),
        ({"expires_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}, "expires_at"),
        ({"graph_ids": (), "default_graph_id": uuid4()}, "default_graph"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_key_is_refused(db: Database, caller: Caller, change: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await issue(db, caller, replace(NewKey("k"), **change))  # type: ignore[arg-type]
    assert refused.value.path == path
