"""The system user that runs PostgreSQL where we are root, which PostgreSQL refuses to be."""

import contextlib
import os
import pwd
import stat
import subprocess
from pathlib import Path

from recollect.errors import Unavailable

_SYSTEM_USER = "recollect_postgres"


def server_account() -> pwd.struct_passwd | None:
    """None for an ordinary user, who runs PostgreSQL as themselves; for root a system user of its own.

    The user is made on first use. Raises Unavailable if that is not possible.
    """
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(_SYSTEM_USER)
    _make_system_user()
    return pwd.getpwnam(_SYSTEM_USER)


def _make_system_user() -> None:
    options = ["--system", "--no-create-home", "--user-group", "--shell", "/usr/sbin/nologin"]
    try:
        subprocess.run(["useradd", *options, _SYSTEM_USER], check=True, capture_output=True, cwd="/")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(
            f"PostgreSQL does not run as root, and the system user {_SYSTEM_USER} could not be made. "
            "Run Recollect as an ordinary user, or make that user."
        ) from error


def let_through(path: Path) -> None:
    """Let every user pass through the folders above `path`, without letting them list those.

    The system user must reach the database below folders that only root may enter, such as /root.
    """
    for folder in path.parents:
        _add_mode(folder, stat.S_IXGRP | stat.S_IXOTH)


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
