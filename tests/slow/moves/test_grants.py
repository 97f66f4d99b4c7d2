"""From PostgreSQL 16 on, an owner who is no superuser can move tenants with the rights that docs/cells.md names."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from recollect.accounts.tenants import service as tenants
from recollect.errors import Conflict
from recollect.moves.model import Cell
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_local.postgres import LocalPostgres
from tests.support.cells import cell_url
from tests.support.gateway import eventually
from tests.support.moves import AWAY, TwoCells

DOCUMENTED = (Path(__file__).parents[3] / "docs" / "cells.md").read_text(encoding="utf-8")
GRANTS = re.findall(r"^    ((?:ALTER ROLE|GRANT) .* ?recollect_owner.*;)$", DOCUMENTED, re.MULTILINE)
DATABASES = {HOME: "granted_a", AWAY: "granted_b"}
PASSWORD = "of-the-owner"
RULE = f"local {','.join(DATABASES.values())} recollect_owner scram-sha-256\n"

UNDONE = (
    "ALTER ROLE recollect_owner NOREPLICATION PASSWORD NULL",
    "REVOKE pg_create_subscription FROM recollect_owner",
    "REVOKE SET ON PARAMETER session_replication_role, log_min_error_statement, log_statement, "
    "log_min_duration_statement FROM recollect_owner",
)


def change(rules: Path, before: str, after: str) -> None:
    """Replace the beginning of a file."""
    rules.write_text(after + rules.read_text().removeprefix(before))


@pytest.fixture
async def superuser(postgres: LocalPostgres, database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's connection to the server of both cells, where the owner signs in with a password, as PostgreSQL
    requires.
    """
    connection = await asyncpg.connect(postgres.url())
    rules = Path(await connection.fetchval("SHOW hba_file"))
    change(rules, "", RULE)
    await connection.execute(f"ALTER ROLE recollect_owner PASSWORD '{PASSWORD}'")
    await connection.execute("SELECT pg_reload_conf()")
    yield connection
    change(rules, RULE, "")
    for statement in ("SELECT pg_reload_conf()", *UNDONE):
        await connection.execute(statement)
    for database in DATABASES.values():
        await connection.execute(f"DROP DATABASE {database} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def owned_cells(postgres: LocalPostgres, superuser: asyncpg.Connection, settings: Settings) -> TwoCells:
    """Two cells as their owner reaches them."""
    locale = postgres.database_locale.replace("''", "'")
    for database in DATABASES.values():
        await superuser.execute(f"CREATE DATABASE {database} ENCODING UTF8 {locale} TEMPLATE template0")
        await migrate(cell_url(postgres, "postgres", database))
    urls = {name: cell_url(postgres, "recollect_owner", database) for name, database in DATABASES.items()}
    urls = {name: url.replace("recollect_owner@", f"recollect_owner:{PASSWORD}@") for name, url in urls.items()}

    async def is_asked_for() -> bool:
        try:
            connection = await asyncpg.connect(cell_url(postgres, "recollect_owner", DATABASES[HOME]), password="")
        except (asyncpg.InvalidPasswordError, asyncpg.InterfaceError):
            return True
        await connection.close()
        return False

    await eventually(is_asked_for)
    return TwoCells({name: Cell(name, url, url) for name, url in urls.items()}, settings, [])


async def test_an_owner_without_superuser_can_move_a_tenant_with_the_documented_rights(
    owned_cells: TwoCells, superuser: asyncpg.Connection
) -> None:
    async with Operator.connect(owned_cells.known[HOME].url, owned_cells.settings, role=None) as operator:
        await tenants.create_tenant(operator, "granted", "Granted")
    with pytest.raises(Conflict) as refused:
        await owned_cells.move("granted")
    for lack in (
        "home may not replicate",
        "home may not publish",
        "away may not subscribe",
        "session_replication_role",
    ):
        assert lack in refused.value.message
    assert len(GRANTS) == 5
    for grant in GRANTS:
        for database in DATABASES.values():
            await superuser.execute(grant.replace("DATABASE recollect ", f"DATABASE {database} "))
    for target, source in ((AWAY, HOME), (HOME, AWAY)):
        await owned_cells.move("granted", to=target)
        assert [await owned_cells.place(cell, "granted") for cell in (target, source)] == ["here", None]
    assert await owned_cells.leftovers() == []
