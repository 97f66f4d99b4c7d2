"""A second tree of the checkout, whose tests run the sources of that tree."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.breakages.table import ROOT

SOURCES = ("shared", "services", "workers", "infra")

ENDING_SECONDS = 60.0
"""How long pytest may take to end its servers when it is interrupted."""


@contextmanager
def second_tree() -> Iterator[Path]:
    """A work tree with the tracked files of the checkout as they are, changes included, and a `.venv` of its own."""
    with tempfile.TemporaryDirectory(prefix="recollect-breakages-", ignore_cleanup_errors=True) as folder:
        tree = Path(folder) / "tree"
        try:
            _git("worktree", "add", "--quiet", "--detach", str(tree), _git("stash", "create") or "HEAD")
            make_environment(tree)
            yield tree
        finally:
            with suppress(subprocess.CalledProcessError):
                _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def make_environment(tree: Path) -> None:
    """Make a `.venv` that has our packages from the tree, and all others from the environment that runs this.

    So the commands and processes that tests start are those of the tree, too, whatever variables they are given.
    """
    environment = tree / ".venv"
    venv.EnvBuilder(symlinks=True).create(environment)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    installed = sysconfig.get_path("purelib")
    lines = [*(str(tree / part) for part in SOURCES), f"import site; site.addsitedir({installed!r})"]
    (packages / "tree.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for program in Path(sys.executable).parent.iterdir():
        if not (environment / "bin" / program.name).exists():
            _copy_program(program, environment / "bin")


def _copy_program(program: Path, folder: Path) -> None:
    """Link a program, or copy a script so that it runs in the environment of its new folder."""
    line = f"#!{sys.executable}\n".encode()
    text = program.read_bytes() if program.is_file() else b""
    if not text.startswith(line):
        (folder / program.name).symlink_to(program)
        return
    (folder / program.name).write_bytes(f"#!{folder / 'python'}\n".encode() + text.removeprefix(line))
    shutil.copymode(program, folder / program.name)


def imported_from(tree: Path) -> Path:
    """The file from which a process of the tree imports the core."""
    command = [_python(tree), "-c", "import recollect; print(recollect.__file__)"]
    return Path(subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout.strip())


def run_tests(tree: Path, tests: Sequence[str], *, seconds: float, stop_at_first: bool) -> list[str]:
    """The ids of the tests that failed. Raises TimeoutError for a run that takes longer, ValueError where none ran."""
    cache = tree / ".pytest_cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = [_python(tree), "-m", "pytest", "-q", "--no-header", "--tb=no", "-o", f"cache_dir={cache}"]
    command += ["-x"] if stop_at_first else []
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8") as output:
        status = _run([*command, *tests], tree, output.fileno(), seconds)
        output.seek(0)
        if status not in (0, 1, 2):
            raise ValueError(f"pytest ended with status {status}:\n{output.read()[-2000:]}")
    failed = cache / "v" / "cache" / "lastfailed"
    return list(json.loads(failed.read_text(encoding="utf-8"))) if status and failed.exists() else []


def _python(tree: Path) -> str:
    return str(tree / ".venv" / "bin" / "python")


def _run(command: Sequence[str], tree: Path, output: int, seconds: float) -> int:
    """The exit status of pytest, which is interrupted after so many seconds: it then ends its servers."""
    variables = os.environ | {"VIRTUAL_ENV": str(tree / ".venv")}
    variables.pop("PYTHONPATH", None)
    process = subprocess.Popen(command, cwd=tree, stdout=output, stderr=subprocess.STDOUT, env=variables)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
