"""The sources of an earlier revision of this repository, which run beside those of the working tree."""

import os
import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from recollect.settings import Settings
from tests.support.fleet import sources
from tests.support.workers import environment

ROOT = Path(__file__).parents[2]
CHOSEN = "UPGRADE_FROM"
"""The environment variable with a revision; if empty, the last tag and those in the file `upgrade_from`."""

CLI = "import sys; from recollect_cli.main import main; sys.exit(main())"
PREPARE = """
import asyncio, asyncpg, sys
from pathlib import Path
import recollect
try:
    from recollect.postgres.connections import session_settings
except ModuleNotFoundError:  # Until it had a file of its own.
    from recollect.postgres.database import session_settings
from recollect.postgres.sql import Queries
from recollect.settings import Settings

async def main():
    core, settings = Path(recollect.__file__).parent, Settings()
    assert sys.argv[1] in str(core), core  # Else it would not be the older tree that is asked.
    session = session_settings("recollect_owner", settings)
    connection = await asyncpg.connect(settings.migration_url, server_settings=session)
    for file in sorted(core.rglob("queries.sql")):
        queries = Queries("recollect." + ".".join(file.parent.relative_to(core).parts))
        try:
            texts = {name: query.with_types(vector="halfvec").text for name, query in queries.by_name.items()}
        except AttributeError:  # As in 0.1.0, where parameters had numbers and no types were put in.
            texts = queries.statements
        for name, text in texts.items():
            try:
                await connection.prepare(text)
            except asyncpg.PostgresError as error:
                print(f"{file.parent.name}.{name}: {error}")

asyncio.run(main())
"""


def old_revisions() -> list[str]:
    """The revisions from which to upgrade."""
    if chosen := os.environ.get(CHOSEN):
        return [chosen]
    lines = (Path(__file__).parent / "upgrade_from").read_text().splitlines()
    return [*_last_tag(), *(line.split()[0] for line in lines)]


def _last_tag() -> list[str]:
    tags = _git("tag", "--list", "--sort=-v:refname", "--merged", "HEAD").decode().split()
    released = [tag for tag in tags if re.fullmatch(r"v?\d+\.\d+\.\d+", tag)]
    return released[:1]


def checked_out(revision: str, folder: Path) -> Path:
    """The files of a revision, without its history."""
    archive = _git("archive", "--format=tar", f"{revision}^{{commit}}")
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def _git(*arguments: str) -> bytes:
    finished = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    assert finished.returncode == 0, f"git {arguments[0]}: {finished.stderr.decode()}"
    return finished.stdout


def recollect(settings: Settings, *arguments: str, tree: Path | None = None) -> str:
    """The output of `recollect`, from that tree or the working tree."""
    return _python(settings, tree, CLI, *arguments)


def rejected_queries(settings: Settings, tree: Path) -> list[str]:
    """The queries of a tree that the database rejects, each with the message of PostgreSQL."""
    return _python(settings, tree, PREPARE, str(tree)).splitlines()


def _python(settings: Settings, tree: Path | None, code: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment(settings), **sources(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{arguments}: {ran.stdout}{ran.stderr}"
    return ran.stdout
