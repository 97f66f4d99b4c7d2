"""The files of a data folder: its lock, its secrets, and the address of the running stack."""

import contextlib
import errno
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import platformdirs
from pydantic import SecretStr

from recollect.errors import ErrorCode, InvalidInput, Unavailable
from recollect.settings.database import MIN_SECRET_BYTES
from recollect_local.address import Endpoint
from recollect_local.demo_keys import DemoKeys

KEY_FILES = ("admin-key", "api-key")
"""The files of the keys: for administration, and for agents."""

MARKER = ".recollect"
"""The file that marks a data folder of Recollect, whatever else is put there."""

_IGNORED_BY_GIT = ".gitignore"
_SERVERS = ("logs", "postgres", "postgres.unfinished", "valkey")
_OWN = frozenset((MARKER, _IGNORED_BY_GIT, *KEY_FILES, "key-secret", "embedder", "lock", "local.json", *_SERVERS))
"""The files of a data folder, also of one that was made before there was a marker."""

_OF_NOBODY = frozenset({"lost+found", ".DS_Store"})
"""What file systems put into an empty folder by themselves."""

_RECOVERY = (
    "Every API key here was made with it, so nothing was changed. Put the file back from a backup, or give its secret "
    "as RECOLLECT_KEY_SECRET. Where it is lost, delete key-secret, api-key and admin-key here: the next start makes "
    "new ones. What is remembered stays; the keys, sessions and webhook secrets made before are void."
)


class DataFolder:
    """One stack's data. `path` is absolute; None is the user's data folder for Recollect."""

    def __init__(self, path: Path | None) -> None:
        self.path = (path or platformdirs.user_data_path("recollect")).expanduser().resolve()

    @contextmanager
    def locked(self) -> Iterator["Lock"]:
        """Lock the folder, made if it is missing, for this process; the kernel releases the lock when we die.

        Raises Unavailable, naming the holder, while another stack runs on it, and InvalidInput for a folder with files
        of somebody else: the secrets and the database would stand among them.
        """
        self._require_own()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(file, self.path)
            self._mark()
            self.published_file.unlink(missing_ok=True)  # left by a stack that was killed
            yield Lock(file)
        finally:
            os.close(file)

    @contextmanager
    def published(self, endpoint: Endpoint, ready_file: Path | None) -> Iterator[None]:
        """Write the address of this stack to local.json and to `ready_file`, and remove both at the end."""
        files = [self.published_file, ready_file] if ready_file else [self.published_file]
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
        """The secret that keys the hashes of this folder's API keys; made on first use, and never again.

        Raises InvalidInput, naming the file, for a file that holds no whole secret, and for one that is gone while the
        keys that were made with it are still there: another secret would make all of them void.
        """
        path = self.path / "key-secret"
        if not path.exists():
            if any(map(self._stored, KEY_FILES)):
                raise InvalidInput(f"It is missing. {_RECOVERY}", path=str(path))
            write_private(path, secrets.token_urlsafe(MIN_SECRET_BYTES))
        return _whole_secret(path)

    def stored_secret(self) -> SecretStr | None:
        """The secret of an earlier start; None where there is none. Raises InvalidInput as `key_secret` does."""
        path = self.path / "key-secret"
        return SecretStr(_whole_secret(path)) if path.exists() else None

    def embedder(self, default: str) -> str:
        """The embedder of this folder's graphs: `default` when the folder was made.

        It stays the same, since vectors of another are not compared with those that are stored.
        """
        path = self.path / "embedder"
        if not path.exists():
            write_private(path, default)
        return path.read_text(errors="replace").strip()

    def keys(self) -> DemoKeys:
        """The keys that an earlier start stored."""
        return DemoKeys(self._stored("api-key"), self._stored("admin-key"))

    def keep_keys(self, keys: DemoKeys) -> None:
        """Store the keys for later starts."""
        for name, key in zip(KEY_FILES, (keys.admin, keys.agent), strict=True):
            if key is not None and key != self._stored(name):
                write_private(self.path / name, key)

    def _stored(self, name: str) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self.path / name).read_text(errors="replace").strip()
        return None

    @property
    def published_file(self) -> Path:
        """The file with the address and the keys of the stack that runs on this folder."""
        return self.path / "local.json"

    def _require_own(self) -> None:
        names = {path.name for path in self.path.iterdir()} - _OF_NOBODY if self.path.is_dir() else set()
        is_own = MARKER in names or names <= _OWN or {"lock", "key-secret"} <= names or {"lock", "api-key"} <= names
        if not is_own:
            raise InvalidInput(
                f"{self.path} has files that are not Recollect's. Choose an empty or a new folder with --data-dir."
            )

    def _mark(self) -> None:
        """Leave the marker, and keep git from adding the secrets where the folder is in a working tree."""
        for name, text in ((MARKER, "Data of Recollect (`recollect local`)."), (_IGNORED_BY_GIT, "*")):
            if not (self.path / name).exists():
                write_private(self.path / name, text)


class Lock:
    """The lock of a folder; its file names the holder."""

    def __init__(self, file: int) -> None:
        self._file = file

    def sign(self, address: str) -> None:
        """Write our process and our address, for the message of a stack that finds the folder locked."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()}, {address}".encode(), 0)


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600, whole or not at all, which also a power cut afterwards leaves as it is."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())  # Without it, the new name can outlive a power cut and its content not: an empty file.
    Path(file.name).replace(path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Make the names in a folder durable, on file systems that can do it by itself."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL):  # Of network file systems, which need no such call.
            raise
    finally:
        os.close(folder)


def _whole_secret(path: Path) -> str:
    """The secret in a file. A crash can also leave a file of zeros, which is long enough and no secret."""
    secret = path.read_text(errors="replace").strip()
    if len(secret.encode()) < MIN_SECRET_BYTES or not secret.isprintable() or "\N{REPLACEMENT CHARACTER}" in secret:
        raise InvalidInput(
            f"It does not hold a secret of at least {MIN_SECRET_BYTES} printable bytes: it is empty, was cut short, or "
            f"was overwritten. {_RECOVERY}",
            path=str(path),
        )
    return secret


def _take(file: int, path: Path) -> None:
    import fcntl  # Imported late: Windows lacks it, where the commands of clients look for a folder, too.

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(file, 1000, 0).decode() or "it is just starting"
        raise Unavailable(
            f"Recollect already runs on {path} ({holder}). Stop it, or choose another folder with --data-dir.",
            code=ErrorCode.BUSY,
        ) from None
    os.ftruncate(file, 0)
