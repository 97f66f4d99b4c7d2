"""Names and texts of tenants are shown to operators as plain text: they control no terminal and no pipe reader."""

import asyncio
import os
import pty
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.commands import Shell
from tests.support.gateway import RunningGateway, issue_key
from tests.support.jobs import COUNT, Desk

NAMES = {
    "closing markup": ("[/x]", "[/x]"),
    "markup": ("[red]x", "[red]x"),
    "escape": ("a\x1b[2Jb", r"a\x1b[2Jb"),
    "one-byte escape": ("a\x9b2Jb", r"a\x9b2Jb"),
    "columns and lines": ("a\tb\nc\rd", r"a\tb\nc\rd"),
    "lines of Unicode": ("a\u2028b\x85c", r"a\u2028b\x85c"),
    "turned around": ("a\u202egpj.exe", r"a\u202egpj.exe"),
}
STORED = [stored for stored, _ in NAMES.values()]
SHOWN = [shown for _, shown in NAMES.values()]


@pytest.fixture
def shell(settings: Settings, tmp_path: Path) -> Shell:
    """The shell of an operator."""
    variables = {
        "RECOLLECT_DATABASE_URL": settings.database_url,
        "RECOLLECT_OWNER_DATABASE_URL": settings.migration_url,
        "TERM": "dumb",  # Whatever is styled is not by our own doing.
        "COLUMNS": "250",
        "LINES": "50",  # A dumb terminal's width is believed where its height is told, too.
    }
    return Shell(tmp_path, variables)


async def on_terminal(shell: Shell, *words: str) -> tuple[int, str]:
    """The exit code of a command at a terminal, and everything that the terminal received."""
    ours, theirs = pty.openpty()
    process = shell.start(*words, stdout=theirs, stderr=theirs)
    os.close(theirs)

    def read() -> bytes:
        got = bytearray()
        try:
            while part := os.read(ours, 65536):
                got += part
        except OSError:  # Linux says so that the other side is closed.
            pass
        os.close(ours)
        return bytes(got)

    shown = await asyncio.to_thread(read)
    return process.communicate().code, shown.decode().replace("\r\n", "\n")


def is_plain(shown: str) -> bool:
    return all(character.isprintable() for character in shown.replace("\n", "").replace("\t", ""))


@pytest.fixture
async def named(db: Database, settings: Settings, caller: Caller, owner: asyncpg.Connection) -> None:
    """Keys with such names, which could be created in earlier versions."""
    for name in STORED:
        issued = await issue_key(db, settings, caller)
        await owner.execute("UPDATE api_keys SET name = $2 WHERE id = $1", issued.key.id, name)


@pytest.mark.usefixtures("named")
async def test_hostile_names_of_keys_are_escaped(shell: Shell, tenant: Tenant) -> None:
    piped = await shell.run("keys", "list", tenant.slug)
    rows = [line.split("\t") for line in piped.out.decode().split("\n")[:-1]]
    assert (piped.code, [row[1] for row in rows]) == (0, SHOWN)
    assert {len(row) for row in rows} == {6}
    code, shown = await on_terminal(shell, "keys", "list", tenant.slug)
    assert code == 0, shown
    assert all(name in shown for name in SHOWN)
    assert is_plain(shown)


@pytest.mark.proves("security: printable-names")
async def test_hostile_names_of_tenants_are_escaped(
    shell: Shell, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    expected = set()
    for stored, told in NAMES.values():
        tenant = await new_tenant()
        await owner.execute("UPDATE tenants SET name = $2 WHERE id = $1", tenant.id, stored)
        expected.add((tenant.slug, told))
    piped = await shell.run("tenants", "list")
    rows = [line.split("\t") for line in piped.out.decode().split("\n")[:-1]]
    assert expected <= {(slug, name) for slug, name, *_ in rows}
    assert len({len(row) for row in rows}) == 1
    code, shown = await on_terminal(shell, "tenants", "list")
    assert code == 0, shown
    assert all(name in shown for name in SHOWN)
    assert is_plain(shown)


async def test_hostile_errors_of_jobs_are_escaped(
    shell: Shell, gateway: RunningGateway, key: str, desk: Desk, owner: asyncpg.Connection
) -> None:
    job = await desk.start(COUNT, steps=1)
    told = "".join(STORED)
    failed = (
        "UPDATE jobs SET status = 'failed', error_code = 'x', error_message = $2, finished_at = now() WHERE id = $1"
    )
    await owner.execute(failed, job.id, told)
    shell = shell.with_variables(RECOLLECT_URL=gateway.url, RECOLLECT_API_KEY=key)
    for words in (["show", str(job.id)], ["list"]):
        code, shown = await on_terminal(shell, "jobs", *words)
        assert code == (1 if "show" in words else 0), shown
        assert is_plain(shown)
    code, shown = await on_terminal(shell, "jobs", "show", str(job.id), "--json")
    assert is_plain(shown)
    document: dict[str, Any] = msgspec.json.decode(shown)
    assert document["error"]["message"] == told


async def test_names_with_control_characters_are_refused(
    shell: Shell, gateway: RunningGateway, admin_key: str, tenant: Tenant
) -> None:
    async with gateway.http(admin_key) as http:
        for name in STORED:
            answered = await http.post("/v1/keys", json={"name": name})
            assert answered.status_code == (201 if name.startswith("[") else 400), answered.text
    for words in (
        ["keys", "create", tenant.slug, STORED[2]],
        ["tenants", "create", "hostile-name", "--name", STORED[2]],
    ):
        refused = await shell.run(*words)
        assert (refused.code, "control characters" in refused.err) == (1, True)
