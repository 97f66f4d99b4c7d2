"""Folders for unix sockets."""

import hashlib
import os
import re
from pathlib import Path

from recollect.errors import Unavailable

# sockaddr_un holds 108 bytes on Linux and 104 on macOS, the closing zero included.
_LONGEST_SOCKET_PATH = 103
# Other characters would need quoting, and asyncpg, libpq, redis-py and arq each read it differently.
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
# Of all the places that every machine has, the shortest; the folder made there is checked to be ours.
_SHORT_BASE = Path("/tmp")  # noqa: S108


def socket_folder(home: Path, socket_name: str, owner: int) -> Path:
    """Where the socket of a server whose files are in `home` lives: there, or in a short folder under /tmp.

    The short one is for paths that are too long for a socket or hold other than plain characters. Its
    name is made from `home`, so that it is the same at every start. Mode 0700, owned by the uid
    `owner`. Raises Unavailable if somebody else has taken that name.
    """
    path = str(home / socket_name)
    if len(path) <= _LONGEST_SOCKET_PATH and _PLAIN.fullmatch(path):
        return home
    short = _SHORT_BASE / f"recollect-{hashlib.sha256(f'{owner}:{home}'.encode()).hexdigest()[:16]}"
    _make_private(short, owner)
    return short


def _make_private(folder: Path, owner: int) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if folder.is_symlink() or found.st_uid not in (owner, os.geteuid()):
            raise Unavailable(
                f"{folder} belongs to somebody else. Remove it, or choose a shorter data folder."
            ) from None
    if os.geteuid() != owner:
        os.chown(folder, owner, -1)
    folder.chmod(0o700)
