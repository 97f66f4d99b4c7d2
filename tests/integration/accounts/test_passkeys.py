"""The limit of a person's passkeys, when several are registered at the same time."""

import asyncio
import json
from copy import copy
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from recollect.accounts.passkeys import service as passkeys
from recollect.accounts.passkeys import store
from recollect.accounts.passkeys.model import MAX_PASSKEYS, Passkey, PasskeySite
from recollect.accounts.people.model import PersonSession
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict
from recollect.ids import new_id
from recollect.postgres.database import Database
from tests.support.authenticator import Authenticator
from tests.support.gateway import eventually
from tests.support.people import joined

PEPPER = b"pepper"
BROWSER = b"b" * 32
SITE = PasskeySite.of("https://recollect.example")
WAITS = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
    )"""


async def test_of_two_registered_at_once_one_gets_the_last_place(
    db: Database,
    databases: Databases,
    caller: Caller,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither commits before the other has stored its passkey, unless the other has to wait for it."""
    person = await joined(databases, caller, Role.READER, pepper=PEPPER)
    now = datetime.now(UTC)
    session = PersonSession(new_id(), person.id, person.email, person.name, now, now, now, None)
    await owner.execute(
        """INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, name)
        SELECT gen_random_uuid(), $1, gen_random_uuid()::text::bytea, 'x', 0, 'x' FROM generate_series(2, $2)""",
        person.id,
        MAX_PASSKEYS,
    )
    insert, stored = store.insert_passkey, 0

    async def both_have_stored_or_one_waits() -> bool:
        return stored == 2 or bool(await owner.fetchval(WAITS))

    async def insert_and_wait(*arguments: Any, **fields: Any) -> Passkey | None:
        nonlocal stored
        passkey = await insert(*arguments, **fields)
        stored += 1
        if stored == 1:
            await eventually(both_have_stored_or_one_waits)
        return passkey

    monkeypatch.setattr(store, "insert_passkey", insert_and_wait)

    async def add(databases: Databases) -> Passkey:
        options = json.loads(await passkeys.begin_adding(databases, session, BROWSER, SITE))
        _, credential = Authenticator(SITE.origin).make(options)
        return await passkeys.add(
            databases, session, BROWSER, SITE, name="Laptop", credential=credential, password_changes=0
        )

    done = await asyncio.gather(add(databases), add(Databases(copy(db))), return_exceptions=True)
    [refused] = [each for each in done if not isinstance(each, Passkey)]
    assert isinstance(refused, Conflict)
    count = await owner.fetchval("SELECT count(*) FROM passkeys WHERE person_id = $1", person.id)
    assert count == MAX_PASSKEYS
