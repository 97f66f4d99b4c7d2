"""`recollect tenants move`: a real process is killed while it holds the writes of a tenant, and another continues."""

import json
import signal
from pathlib import Path

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.settings import Settings
from recollect.settings.cells import HOME
from tests.support.commands import Shell
from tests.support.moves import AWAY, TwoCells


@pytest.fixture
def shell(settings: Settings, two_cells: TwoCells, tmp_path: Path) -> Shell:
    """A shell with the addresses of both cells, as their superuser."""
    home, away = (two_cells.known[name].url for name in (HOME, AWAY))
    variables = {
        "RECOLLECT_DATABASE_URL": settings.database_url,
        "RECOLLECT_OWNER_DATABASE_URL": home,
        "RECOLLECT_REDIS_URL": settings.redis_url,
        "RECOLLECT_CELLS": json.dumps({AWAY: {"database_url": away, "owner_database_url": away}}),
    }
    return Shell(tmp_path, variables)


async def test_a_move_that_is_killed_while_writes_are_held_can_be_continued(
    shell: Shell, two_cells: TwoCells, tenant: Tenant
) -> None:
    async with two_cells.bare(AWAY) as blocking, blocking.transaction():
        await blocking.execute("LOCK TABLE sessions IN SHARE MODE")  # What is done before the check needs none.
        with shell.start("tenants", "move", tenant.slug, "--to", AWAY) as moving:
            told = [line.decode().strip() for line in iter(moving.stderr.readline, b"writes are held\n")]
            moving.send_signal(signal.SIGKILL)
        assert any("tables copied" in line for line in told)
    assert await two_cells.place(HOME, tenant.slug) == "leaving"
    listed = await shell.run("tenants", "moves")
    assert [line.split("\t")[:3] for line in listed.out.decode().splitlines()] == [[tenant.slug, HOME, AWAY]]
    continued = await shell.run("tenants", "move", tenant.slug, "--continue")
    assert continued.code == 0, continued.err
    assert [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)] == [None, "here"]
    assert await two_cells.leftovers() == []


async def test_the_options_of_a_move_exclude_each_other(shell: Shell, tenant: Tenant) -> None:
    done = await shell.run("tenants", "move", tenant.slug, "--to", AWAY, "--undo")
    assert (done.code, "Set exactly one of --to, --continue and --undo" in done.err) == (1, True), done.err
