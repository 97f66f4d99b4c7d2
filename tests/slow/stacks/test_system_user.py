"""The system user that runs PostgreSQL for root, and what it may reach."""

import multiprocessing
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.errors import Unavailable
from recollect_local import account
from recollect_local.account import server_account
from recollect_local.postgres import LocalPostgres, _program
from recollect_local.process import as_user

PROCESSES = 3
ROUNDS = 8

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes system users")


@pytest.fixture
def name() -> Iterator[str]:
    """The name of a system user that does not exist. It is removed afterwards."""
    name = f"recollect_test_{os.getpid()}"
    yield name
    if os.geteuid() == 0:
        remove(name)


def remove(name: str) -> None:
    """Remove the user if it exists. Another program may have locked /etc/passwd for a moment."""
    give_up = time.monotonic() + 60
    while subprocess.run(["userdel", name], capture_output=True).returncode not in (0, 6):  # 6: there is no such user
        assert time.monotonic() < give_up, f"{name} cannot be removed"
        time.sleep(0.1)


def who_am_i(name: str) -> tuple[int, str]:
    """Request the account, and immediately run a program as it that looks itself up, as initdb does."""
    account = server_account(name)
    assert account is not None
    return account.pw_uid, name_of(account)


def name_of(account: pwd.struct_passwd) -> str:
    """The name that a program that runs as the account finds, or its complaint."""
    return subprocess.run(
        ["id", "-un"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", **as_user(account)
    ).stdout.strip()


@as_root
def test_concurrent_processes_get_one_user(name: str) -> None:
    """Each time on a machine without the user."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for _ in range(ROUNDS):
            remove(name)
            answers = pool.map(who_am_i, [name] * PROCESSES, chunksize=1)
            left = pwd.getpwnam(name)
            assert answers == [(left.pw_uid, name)] * PROCESSES


@as_root
def test_a_user_that_cannot_be_created_is_reported(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=f"{name} could not be created .*useradd"):
        server_account(name)


@as_root
def test_a_user_that_never_appears_is_reported_in_limited_time(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`useradd` repeatedly says that another program has locked the file."""
    useradd = tmp_path / "useradd"
    useradd.write_text("#!/bin/sh\necho 'useradd: cannot lock /etc/passwd; try again later.' >&2\nexit 1\n")
    useradd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(account, "_WAIT_SECONDS", 0.5)
    with pytest.raises(Unavailable, match=f"{name} could not be created .*cannot lock /etc/passwd"):
        server_account(name)


@as_root
def test_a_locked_file_is_waited_for(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`useradd` cannot lock the file the first time."""
    first = tmp_path / "first"
    first.touch()
    useradd = tmp_path / "useradd"
    useradd.write_text(f'#!/bin/sh\nrm {first} 2>/dev/null && exit 1\nPATH=${{PATH#*:}} exec useradd "$@"\n')
    useradd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert who_am_i(name) == (pwd.getpwnam(name).pw_uid, name)
    assert not first.exists()


def test_an_ordinary_user_runs_it_as_themselves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert server_account(name) is None
    with pytest.raises(KeyError):
        pwd.getpwnam(name)


class TestPostgres:
    """What it needs to run as that user. An ordinary user has all of this already."""

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """Not below tmp_path, which pytest closes to other users repeatedly."""
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            yield Path(folder)

    def test_runs_even_if_installed_for_its_owner_only(self, folder: Path) -> None:
        """As pip installs with the umask 077."""
        installed = folder / "installed"
        install_for_owner_only(installed)
        done = subprocess.run(
            [sys.executable, "-c", START, str(folder / "data")],
            env=os.environ | {"PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == [str(installed)], done.stderr

    @as_root
    def test_takes_over_data_of_its_former_uid(self, folder: Path) -> None:
        """The data outlived the account: in a volume, or because the user was removed."""
        server = LocalPostgres(folder, settings={"fsync": "off"})
        try:
            server.start()
            server.stop()
            for path in (folder / "postgres", *(folder / "postgres").rglob("*")):
                os.chown(path, 54_321, 54_321, follow_symlinks=False)
            server.start()
            assert server.is_running()
        finally:
            server.stop()


START = """
import sys
from pathlib import Path
from recollect_local import postgres

server = postgres.LocalPostgres(Path(sys.argv[1]), settings={"fsync": "off"})
server.start()
server.stop()
print(postgres._program("postgres").parents[3])
"""


def install_for_owner_only(place: Path) -> None:
    """Copy the wheel of PostgreSQL, with its libraries, to `place`."""
    wheel = _program("postgres").parents[2]
    for part in wheel.parent.glob(f"{wheel.name}*"):
        shutil.copytree(part, place / part.name, symlinks=True)
    for path in (place, *place.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)
