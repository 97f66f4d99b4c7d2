"""`recollect operator`, and `recollect tenants` with an operator API."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.postgres.connections import OPERATOR_ROLE
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.support.cells import OTHER
from tests.support.commands import Shell
from tests.support.gateway import eventually
from tests.support.ports import reserved_port
from tests.support.workers import environment

NOWHERE = "postgresql://nobody@127.0.0.1:9/nowhere"


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


async def lines(shell: Shell, *words: str) -> list[list[str]]:
    done = await shell.run(*words)
    assert done.code == 0, done.err
    return [line.split("\t") for line in done.out.decode().splitlines()]


async def test_commands_use_only_the_operator_api_if_one_is_named(
    settings: Settings, postgres: LocalPostgres, tenant: Tenant, tmp_path: Path, port: int
) -> None:
    owner = Shell(tmp_path, {"RECOLLECT_OWNER_DATABASE_URL": settings.migration_url})
    [[key]] = await lines(owner, "operator", "keys", "create", "ada", "--days", "1")
    served = {
        "RECOLLECT_OPERATOR_DATABASE_URL": postgres.url(OPERATOR_ROLE),
        "RECOLLECT_DATABASE_URL": NOWHERE,
        "RECOLLECT_OWNER_DATABASE_URL": NOWHERE,
        "RECOLLECT_REDIS_URL": settings.redis_url,
        "RECOLLECT_OPERATOR_PORT": str(port),
    }
    process = Shell(tmp_path, served).start("operator", "serve")
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx2.AsyncClient(base_url=url) as http:

            async def listens() -> bool:
                assert process.is_running()
                try:
                    return (await http.get("/health/live")).status_code == 200
                except httpx2.TransportError:
                    return False

            await eventually(listens)
        far = Shell(
            tmp_path,
            {
                "RECOLLECT_OPERATOR_URL": url,
                "RECOLLECT_OPERATOR_KEY": key,
                "RECOLLECT_DATABASE_URL": NOWHERE,
                "RECOLLECT_OWNER_DATABASE_URL": NOWHERE,
            },
        )
        [suspended] = await lines(far, "tenants", "suspend", tenant.slug, "--read-only")
        assert suspended[:3] == [tenant.slug, tenant.name, "read_only"]
        [deleted] = await lines(far, "tenants", "delete", tenant.slug, "--grace-days", "3", "--yes")
        assert deleted[2] == "deleted"
        [restored] = await lines(far, "tenants", "restore", tenant.slug)
        assert restored[2] == "read_only"
        erased = dict(await lines(far, "tenants", "erase", tenant.slug, "--yes"))
        assert erased["tenants"] == "1"
        [[_, slug, _, rows, sha256]] = await lines(far, "tenants", "receipts", tenant.slug)
        assert (slug, len(sha256)) == (tenant.slug, 64)
        assert int(rows) == sum(map(int, erased.values()))
        told = await lines(far, "operator", "log", "--subject", f"tenant:{tenant.slug}")
        assert [entry[2] for entry in told[:3]] == ["tenant.erased", "tenant.deleted", "tenant.restored"]
        [listed] = [
            row for row in await lines(owner, "operator", "keys", "list") if row[1] == "ada" and row[5] != "never"
        ]
        await lines(owner, "operator", "keys", "revoke", listed[0])
        refused = await far.run("tenants", "list")
        assert refused.code == 1
        assert "does not accept the key" in refused.err
        assert key not in refused.err + json.dumps(told)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    away = await far.run("tenants", "list")
    assert away.code == 1
    assert "does not answer" in away.err
    assert "Traceback" not in away.err


async def test_commands_reach_a_tenant_in_any_cell(
    celled: Settings, owner_b: asyncpg.Connection, tmp_path: Path
) -> None:
    slug = f"by-command-{uuid4()}"
    shell = Shell(tmp_path, environment(celled))
    assert [line[0] for line in await lines(shell, "migrate")] == [
        "nothing to do in the cell home: the database is up to date",
        "nothing to do in the cell b: the database is up to date",
    ]
    assert (await lines(shell, "tenants", "create", slug, "--cell", OTHER))[-1][-1] == OTHER
    [[before], _] = await lines(shell, "keys", "hashed")
    await lines(shell, "keys", "create", slug, "agents")
    [[after], _] = await lines(shell, "keys", "hashed")
    assert int(after.split()[0]) == int(before.split()[0]) + 1, "those of every cell are counted"
    keys = "SELECT count(*) FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE t.slug = $1"
    assert await owner_b.fetchval(keys, slug) == 1
    told = await lines(shell, "operator", "cells")
    assert [(line[0], line[-1]) for line in told] == [("home", "ready"), (OTHER, "ready")]
    nowhere = await shell.run("worker", "--cell", "c")
    assert (nowhere.code, b"There is no cell 'c'" in nowhere.err.encode()) == (1, True)


async def test_the_slugs_of_a_removed_cell_are_freed(
    settings: Settings, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    await owner.execute("INSERT INTO tenant_cells (id, slug, cell) VALUES (gen_random_uuid(), 'erased-there', 'gone')")
    shell = Shell(tmp_path, {"RECOLLECT_OWNER_DATABASE_URL": settings.migration_url})
    refused = await shell.run("operator", "forget-cell", "home", "--yes")
    assert (refused.code, "remove it there first" in refused.err) == (1, True)
    told = await shell.run("operator", "forget-cell", "gone")
    assert (told.code, told.out.decode()) == (1, "erased-there\n")
    assert await lines(shell, "operator", "forget-cell", "gone", "--yes") == [["slugs freed: 1"]]
    assert await owner.fetchval("SELECT count(*) FROM tenant_cells WHERE cell = 'gone'") == 0
    [logged, *_] = await lines(shell, "operator", "log", "--subject", "cell:gone")
    assert logged[1:4] == ["operator", "cell.forgotten", "cell:gone"]


@pytest.mark.parametrize("command", [("keys", "list"), ("tenants", "list")])
async def test_a_command_with_only_the_gateways_login_asks_for_that_of_the_owner(
    settings: Settings, tenant: Tenant, tmp_path: Path, command: tuple[str, str]
) -> None:
    """One command uses the database, the other the operator API in its own process."""
    words = [*command, tenant.slug] if command[0] == "keys" else command
    done = await Shell(tmp_path, {"RECOLLECT_DATABASE_URL": settings.database_url}).run(*words)
    assert (done.code, done.out) == (1, b"")
    assert done.err == (
        "recollect: The login of RECOLLECT_DATABASE_URL may not connect to the database as recollect_owner: "
        "set RECOLLECT_OWNER_DATABASE_URL to one that may.\n"
    )


@pytest.mark.parametrize("words", [("keys", "list", "acme"), ("tenants", "list")])
async def test_a_command_whose_database_is_away_names_the_settings(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = await Shell(tmp_path, {"RECOLLECT_DATABASE_URL": NOWHERE}).run(*words)
    assert (done.code, done.out) == (1, b"")
    assert done.err.endswith(" Check RECOLLECT_DATABASE_URL and RECOLLECT_OWNER_DATABASE_URL.\n")
