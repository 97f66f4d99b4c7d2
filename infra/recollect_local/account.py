"""The system user that runs PostgreSQL if we are root, since PostgreSQL refuses to run as root."""

import contextlib
import fcntl
import os
import pwd
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import Unavailable
from recollect_local.process import as_user

SYSTEM_USER = "recollect_postgres"

_LOCK = Path("/run/recollect-account.lock")  # only root may write there
_WAIT_SECONDS = 30.0
_USERADD_CANNOT_NOW = 1  # another program has locked /etc/passwd
_USERADD_NAME_IS_TAKEN = 9  # by the user we want


def server_account(name: str = SYSTEM_USER) -> pwd.struct_passwd | None:
    """None for an ordinary user, who runs PostgreSQL as themselves; for root the system user `name`.

    The user is made on first use. Several processes at once get the same user, and can run programs as it right away.
    Waits for about a minute at most. Raises Unavailable if the user cannot be made.
    """
    if os.geteuid() != 0:
        return None
    account = _find(name)
    if account is None:
        with _one_at_a_time(name):
            account = _find(name) or _make(name)
    return account


def _find(name: str) -> pwd.struct_passwd | None:
    """The account, once it is found by its name and by its uid, as `initdb` looks for it."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(pwd.getpwnam(name).pw_uid)
    return None


@contextlib.contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    """Hold the lock under which system users are made.

    Two runs of `useradd` at the same time both succeed: each takes a free uid, and the second one's entry replaces the
    first one's, whose uid is then nobody's.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    try:
        file = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _not_made(name, str(error)) from error
    try:
        while not _take(file):
            if time.monotonic() > deadline:
                raise _not_made(name, f"another process has held {_LOCK} for {_WAIT_SECONDS:.0f} s")
            time.sleep(0.05)
        yield
    finally:
        os.close(file)


def _take(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(name: str) -> pwd.struct_passwd:
    """Make the user; return once it can be looked up, which a cache of names (nscd) may delay."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        output = _run_useradd(name)
        account = _find(name)
        if account is not None and _is_known_to_programs(account):
            return account
        if time.monotonic() > deadline:
            raise _not_made(name, output or f"it was created, but cannot be looked up after {_WAIT_SECONDS:.0f} s")
        time.sleep(0.1)


def _run_useradd(name: str) -> str:
    """Run `useradd`; return its output. Raises Unavailable if the user is not made and trying again is no use."""
    options = ["--system", "--no-create-home", "--user-group", "--shell", "/usr/sbin/nologin"]
    try:
        process = subprocess.run(
            ["useradd", *options, name], capture_output=True, text=True, cwd="/", timeout=_WAIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_made(name, str(error)) from error
    output = " ".join(process.stderr.split())
    if process.returncode not in (0, _USERADD_CANNOT_NOW, _USERADD_NAME_IS_TAKEN):
        raise _not_made(name, output)
    return output


def _is_known_to_programs(account: pwd.struct_passwd) -> bool:
    """Whether a program that runs as the account learns its own name."""
    known = subprocess.run(["id", "-un"], capture_output=True, cwd="/", timeout=_WAIT_SECONDS, **as_user(account))
    return known.returncode == 0


def _not_made(name: str, reason: str) -> Unavailable:
    return Unavailable(
        f"PostgreSQL does not run as root, and the system user {name} could not be created ({reason}). "
        "Run Recollect as an ordinary user, or create that user."
    )


def let_through(path: Path) -> None:
    """Let every user pass through the folders above `path`, without letting them list these folders.

    The system user must reach the database below folders that only root may enter, such as /root.
    """
    for folder in path.parents:
        _add_mode(folder, stat.S_IXGRP | stat.S_IXOTH)


def hand_over(folder: Path, account: pwd.struct_passwd) -> None:
    """Give the account a folder that it owned under another uid: on another machine, or before it was made again."""
    if folder.exists() and folder.stat().st_uid != account.pw_uid:
        for path in (*folder.rglob("*"), folder):  # the folder last: until then this is done again
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def let_read(folder: Path) -> None:
    """Let every user read and run what is in `folder`: programs that were installed under a strict umask."""
    let_through(folder)
    for path in (folder, *folder.rglob("*")):
        executable = path.is_dir() or os.access(path, os.X_OK)
        _add_mode(path, stat.S_IRGRP | stat.S_IROTH | (stat.S_IXGRP | stat.S_IXOTH if executable else 0))


def _add_mode(path: Path, bits: int) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & bits != bits:
        path.chmod(mode | bits)
