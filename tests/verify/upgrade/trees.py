"""The sources of three releases, which run beside each other: this tree, the next release, and the one after that.

The next release is a copy of this tree whose queries use what `expand.sql` adds, and nothing that `contract.sql` drops.
The one after it has the same queries, and `contract.sql` among its migrations.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from recollect.postgres.connections import session_settings
from recollect.postgres.migrate import BASELINE
from recollect.postgres.sql import Queries
from recollect.settings import Settings
from tests.support.fleet import PARTS, sources
from tests.support.workers import environment

ROOT, HERE = Path(__file__).parents[3], Path(__file__).parent
MIGRATIONS = Path("shared") / "recollect" / "postgres" / "migrations"
CHOSEN = "UPGRADE_FROM"
"""The environment variable with the revision to upgrade from; if empty, this tree, and the last tag of a release."""

THIS_TREE = "this tree"

RENAMED = (
    (re.compile(r"\bcount_waiting\(:"), "count_unembedded(:"),
    (re.compile(r"\bgraph_index\.index_epoch,"), "graph_index.search_epoch AS index_epoch,"),
    (
        re.compile(r"\bindex_epoch = next_index_epoch\((i\.)?index_epoch\)"),
        r"search_epoch = next_index_epoch(\1search_epoch)",
    ),
)
"""What the queries of the next release name otherwise."""

CLI = "import sys; from recollect_cli.main import main; sys.exit(main())"
PREPARE = """
import asyncio, asyncpg, sys
from pathlib import Path
import recollect
from {connections} import session_settings
from {sql} import Queries
from recollect.settings import Settings

async def main():
    core, settings = Path(recollect.__file__).parent, Settings()
    assert sys.argv[1] in str(core), core  # Else it would not be the other tree that is asked.
    session = session_settings("recollect_owner", settings)
    connection = await asyncpg.connect(settings.migration_url, server_settings=session)
    for file in sorted(core.rglob("queries.sql")):
        queries = Queries("recollect." + ".".join(file.parent.relative_to(core).parts))
        for name, query in queries.by_name.items():
            try:
                await connection.prepare(query.with_types(vector="halfvec").text)
            except asyncpg.PostgresError as error:
                print(f"{{file.parent.name}}.{{name}}: {{error}}")

asyncio.run(main())
"""


def old_revisions() -> list[str]:
    """What to upgrade from: this tree, whose migrations begin with the baseline, and the last release."""
    if chosen := os.environ.get(CHOSEN):
        return [chosen]
    return [THIS_TREE, *_last_tag()]


def _last_tag() -> list[str]:
    tags = _git("tag", "--list", "--sort=-v:refname", "--merged", "HEAD").decode().split()
    released = [tag for tag in tags if re.fullmatch(r"v?\d+\.\d+\.\d+", tag)]
    return [tag for tag in released[:1] if _git("ls-tree", tag, "--", str(MIGRATIONS / f"{BASELINE}.sql"))]


def tree_of(revision: str, folder: Path) -> Path:
    """The packages of a revision, without its history, in a folder; `THIS_TREE`: as they are now."""
    if revision == THIS_TREE:
        for part in PARTS:
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        return folder
    archive = _git("archive", "--format=tar", f"{revision}^{{commit}}")
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def next_release(folder: Path) -> Path:
    """A copy of this tree whose migrations have `expand.sql`, and whose queries need it."""
    tree = tree_of(THIS_TREE, folder)
    _add_migration(tree, "expand")
    renamed = [_rename(file) for file in sorted((tree / "shared").rglob("queries.sql"))]
    assert sum(renamed) >= len(RENAMED), "the queries no longer name what the drill renames: choose other names"
    return tree


def release_after(following: Path, folder: Path) -> Path:
    """A copy of the next release whose migrations have `contract.sql`, too."""
    shutil.copytree(following, folder, dirs_exist_ok=True)
    _add_migration(folder, "contract")
    return folder


def _add_migration(tree: Path, name: str) -> None:
    number = len(list((tree / MIGRATIONS).glob("*.sql"))) + 1
    shutil.copy(HERE / f"{name}.sql", tree / MIGRATIONS / f"{number:04}_{name}.sql")


def _rename(file: Path) -> int:
    text, count = file.read_text(), 0
    for name, replacement in RENAMED:
        text, found = name.subn(replacement, text)
        count += found
    file.write_text(text)
    return count


def _git(*arguments: str) -> bytes:
    finished = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    assert finished.returncode == 0, f"git {arguments[0]}: {finished.stderr.decode()}"
    return finished.stdout


def recollect(settings: Settings, *arguments: str, tree: Path | None = None) -> str:
    """The output of `recollect`, from that tree or the working tree."""
    return _python(settings, tree, CLI, *arguments)


def rejected_queries(settings: Settings, tree: Path) -> list[str]:
    """The queries of a tree that the database rejects, each with the message of PostgreSQL."""
    code = PREPARE.format(connections=session_settings.__module__, sql=Queries.__module__)
    return _python(settings, tree, code, str(tree)).splitlines()


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
