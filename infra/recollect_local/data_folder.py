"""The files of a data folder: its lock, its secrets, and the address of the running stack."""

import contextlib
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import platformdirs

from recollect.errors import ErrorCode, Unavailable
from recollect_local.address import Endpoint
from recollect_local.demo import DemoKeys


class DataFolder:
    """One stack's data. `path` is absolute; None is the user's data folder for Recollect."""

    def __init__(self, path: Path | None) -> None:
        self.path = (path or platformdirs.user_data_path("recollect")).expanduser().resolve()

    @contextmanager
    def locked(self) -> Iterator["Lock"]:
        """Lock the folder, made if it is missing, for this process; the kernel releases the lock when we die.

        Raises Unavailable, naming the holder, while another stack runs on it.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(file, self.path)
            self._published.unlink(missing_ok=True)  # left by a stack that was killed
            yield Lock(file)
        finally:
            os.close(file)

    @contextmanager
    def published(self, endpoint: Endpoint, ready_file: Path | None) -> Iterator[None]:
        """Write the address of this stack to local.json and to `ready_file`, and remove both at the end."""
        files = [self._published, ready_file] if ready_file else [self._published]
        try:
            for file in files:
                write_private(file, json.dumps(asdict(endpoint), indent=2))
            yield
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        """The log of one server."""
        return self.path / "logs" / f"{name}.log"

    def key_secret(self) -> str:
        """The secret that keys the hashes of this folder's API keys; made on first use."""
        path = self.path / "key-secret"
        if not path.exists():
            write_private(path, secrets.token_urlsafe(32))
        return path.read_text().strip()

    def keys(self) -> DemoKeys:
        """The keys that an earlier start stored."""
        return DemoKeys.stored(self._stored("api-key"), self._stored("admin-key"))

    def keep_keys(self, keys: DemoKeys) -> None:
        """Store the keys for later starts."""
        # First the one for administration: a folder of an earlier version has it in the file of the other.
        for name, key in (("admin-key", keys.admin), ("api-key", keys.agent)):
            if key is not None and key != self._stored(name):
                write_private(self.path / name, key)

    def _stored(self, name: str) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self.path / name).read_text().strip()
        return None

    @property
    def _published(self) -> Path:
        return self.path / "local.json"


class Lock:
    """The lock of a folder; its file names the holder."""

    def __init__(self, file: int) -> None:
        self._file = file

    def sign(self, address: str) -> None:
        """Write our process and our address, for the message of a stack that finds the folder locked."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()}, {address}".encode(), 0)


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600, whole or not at all."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(f"{text}\n")
    Path(file.name).replace(path)


def _take(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(file, 1000, 0).decode() or "it is just starting"
        raise Unavailable(
            f"Recollect already runs on {path} ({holder}). Stop it, or choose another folder with --data-dir.",
            code=ErrorCode.BUSY,
        ) from None
    os.ftruncate(file, 0)
