"""`recollect import` of a folder of documents, and of the archive of an assistant."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from tests.support.commands import Shell
from tests.support.gateway import RunningGateway
from tests.support.jobs import employed
from tests.support.pdf import pdf_of

pytestmark = pytest.mark.usefixtures("leaves_nothing", "worker")


@pytest.fixture
def shell(gateway: RunningGateway, key: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": key})


@pytest.fixture
async def worker(settings: Settings, db: Database) -> AsyncIterator[None]:
    """A worker beside the gateway, which takes turns at jobs."""
    async with employed(settings, db) as context:

        async def work() -> None:
            while not context.stopping.is_set():
                await job_loop.sweep(context)
                await asyncio.sleep(0.05)

        working = asyncio.create_task(work())
        yield
        context.stopping.set()
        await working


async def exported(shell: Shell) -> dict[str, list[str]]:
    """The observations of each entity of the graph."""
    out = await shell.run("export", "--graph", "notes", "--format", "json")
    return {entity["name"]: entity["observations"] for entity in json.loads(out.out)["entities"]}


async def test_a_folder_is_imported_again_and_only_what_changed_changes(shell: Shell) -> None:
    notes = shell.folder / "notes"
    notes.mkdir()
    (notes / "piers.md").write_text("---\ntags: [harbour]\n---\n# North\n\nIt is long.\n\n# South\n\nSee [[boats]].\n")
    (notes / "boats.txt").write_text("Two boats")
    (notes / "manual.pdf").write_bytes(pdf_of("Mind the gap"))
    first = await shell.run("import", "notes", "--graph", "notes")
    assert (first.code, first.err) == (0, "")
    assert first.out == b"notes: 3 new entities, 4 new observations, 1 new relation\n"
    assert await exported(shell) == {
        "piers": ["North: It is long.", "South: See [[boats]]."],
        "boats": ["Two boats"],
        "manual": ["Mind the gap"],
    }
    again = await shell.run("import", "notes", "--graph", "notes")
    assert again.out == b"notes: 0 new entities, 0 new observations, 0 new relations; 4 items contained nothing new\n"
    (notes / "piers.md").write_text("---\ntags: [harbour]\n---\n# North\n\nIt is short.\n\n# South\n\nSee [[boats]].\n")
    changed = await shell.run("import", "notes", "--graph", "notes")
    assert changed.out == (
        b"notes: 0 new entities, 1 new observation, 0 new relations; "
        b"1 item updated existing ones; 3 items contained nothing new\n"
    )
    assert set((await exported(shell))["piers"]) == {"North: It is short.", "South: See [[boats]]."}


async def test_what_cannot_be_read_is_told_and_the_rest_is_imported(shell: Shell) -> None:
    notes = shell.folder / "notes"
    notes.mkdir()
    (notes / "good.txt").write_text("Two boats")
    (notes / "bad.pdf").write_bytes(b"no such format")
    said = await shell.run("import", "notes", "--graph", "notes")
    assert said.code == 1
    assert said.out == b"notes: 1 new entity, 1 new observation, 0 new relations\n"
    assert said.err.startswith("bad.pdf: ")
    missing = await shell.run("import", "nowhere", "--format", "documents", "--graph", "notes")
    assert (missing.code, missing.out) == (1, b"")
    assert "no such file or folder" in missing.err


async def test_an_archive_of_conversations(shell: Shell) -> None:
    messages = [
        {"sender": "human", "text": "I moved to Berlin", "created_at": "2026-05-28T20:26:40Z"},
        {"sender": "assistant", "text": "Shall I change your address?", "created_at": "2026-05-28T20:26:50Z"},
    ]
    with ZipFile(shell.folder / "data.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([{"uuid": "u", "name": "Move", "chat_messages": messages}]))
        archive.writestr("users.json", "[]")
    first = await shell.run("import", "data.zip", "--graph", "notes")
    assert (first.code, first.err) == (0, "")
    assert first.out == b"notes: 0 new entities, 2 new facts, 0 new observations, 0 new relations\n"
    again = await shell.run("import", "data.zip", "--graph", "notes")
    assert b"2 items contained nothing new" in again.out
