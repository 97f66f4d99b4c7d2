"""The servers of the one-machine stack as real processes: their data, who may connect, and how they end."""

import asyncio
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arq
import asyncpg
import psutil
import pytest
from arq.connections import RedisSettings
from redis.asyncio import Redis

import recollect
import recollect_local
from recollect.accounts.identity.model import KIND_SCOPES, NewKey, hash_secret, operator_caller
from recollect.accounts.identity.service import authenticate, create_key
from recollect.accounts.tenants.model import Tenant
from recollect.accounts.tenants.service import own_tenant
from recollect.caller import Scope
from recollect.cells.databases import Databases
from recollect.errors import Unavailable
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_local.account import let_read
from recollect_local.command import CommandServer
from recollect_local.demo import prepare_demo
from recollect_local.demo_keys import DemoKeys
from recollect_local.postgres import LocalPostgres, _installed
from recollect_local.process import start_process
from recollect_local.server import Server
from recollect_local.supervisor import Supervisor
from recollect_local.valkey import LocalValkey
from tests.support.timeouts import MAX_WAIT_SECONDS

# SIGKILL of the server must lose nothing, which needs no fsync: the operating system continues.
QUICK = {"fsync": "off"}

START_BOTH = """
import sys, threading, time
from pathlib import Path
from recollect_local.postgres import LocalPostgres, _program
from recollect_local.valkey import LocalValkey

folder, tied = Path(sys.argv[1]), sys.argv[2] == "tied"
postgres, valkey = LocalPostgres(folder, settings={"fsync": "off"}), LocalValkey(folder)
def start():
    postgres.start()
    valkey.start()
if tied:
    start()
else:  # the kernel ties a process to the thread that started it, and to no other
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
print(postgres.pid, valkey.pid, flush=True)
time.sleep(600)
"""

USE_BOTH = """
import asyncio, os, sys
from pathlib import Path
import asyncpg
from redis import Redis
from recollect_local.postgres import LocalPostgres, _program
from recollect_local.valkey import LocalValkey

postgres, valkey = LocalPostgres(Path(sys.argv[1]), settings={"fsync": "off"}), LocalValkey(Path(sys.argv[1]))
async def database():
    connection = await asyncpg.connect(postgres.url())
    try:
        return await connection.fetchval("SELECT current_database()")
    finally:
        await connection.close()
try:
    postgres.start()
    valkey.start()
    print(os.geteuid(), asyncio.run(database()), Redis.from_url(valkey.url).ping())
finally:
    valkey.stop()
    postgres.stop()
"""


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[LocalPostgres]:
    server = LocalPostgres(tmp_path, settings=QUICK)
    yield server
    server.stop()


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[LocalValkey]:
    server = LocalValkey(tmp_path)
    yield server
    server.stop()


def ask(url: str, query: str) -> Any:
    async def one_value() -> Any:
        connection = await asyncpg.connect(url, timeout=MAX_WAIT_SECONDS)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(one_value())


def wait_until(holds: Callable[[], bool], seconds: float = MAX_WAIT_SECONDS) -> None:
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, f"still not so after {seconds} s"
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, including one that nobody has waited for yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def pid_of(server: Server) -> int:
    assert server.pid is not None
    return server.pid


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def reading(path: Path) -> int:
    """The bits of the mode that let everybody read the file, and run or enter it if its owner may."""
    return 0o555 if mode_of(path) & stat.S_IXUSR else 0o444


def within(path: Path) -> list[Path]:
    """The path, and everything in it if it is a folder, without compiled Python files."""
    return [path, *(one for one in path.rglob("*") if "__pycache__" not in one.parts)]


def python_paths() -> set[Path]:
    """The files and folders that a user must be able to read to run this Python with the installed packages."""
    library = Path(sysconfig.get_config_var("LIBDIR")) / str(sysconfig.get_config_var("INSTSONAME"))
    programs = [Path(sys.executable), Path(sys.executable).resolve(), Path(sys.prefix) / "pyvenv.cfg", library]
    packages = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    ours = [Path(package).parents[1] for package in (recollect.__file__, recollect_local.__file__)]
    return {path for path in (*programs, *packages, *ours) if path.exists()}


class TestPostgres:
    def test_keeps_its_data_across_restarts(self, own_postgres: LocalPostgres) -> None:
        own_postgres.start()
        ask(own_postgres.url(), "CREATE TABLE kept AS SELECT 'still here' AS word")
        first = pid_of(own_postgres)
        own_postgres.stop()
        assert is_gone(first)
        assert not own_postgres.is_running()

        own_postgres.start()
        assert own_postgres.is_running()
        assert ask(own_postgres.url(), "SELECT word FROM kept") == "still here"

    def test_folds_case_in_every_script_in_any_locale(
        self, own_postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LC_ALL", "C")
        own_postgres.start()
        assert ask(own_postgres.url(), "SELECT lower('É') = 'é' AND 'ΣΊΣΥΦΟΣ' ILIKE '%ίσυφο%' AND 'ЖУК' ILIKE 'жук'")

    def test_ignores_settings_for_other_servers(
        self, own_postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in {"PGPORT": "1", "PGHOST": "192.0.2.1", "PGDATA": "/nowhere", "PGUSER": "nobody"}.items():
            monkeypatch.setenv(name, value)
        own_postgres.start()
        assert ask(own_postgres.url(), "SELECT current_user || '@' || current_database()") == "postgres@recollect"

    @pytest.mark.proves("security: local-data-folder")
    def test_accepts_connections_of_its_owner_only(self, own_postgres: LocalPostgres, tmp_path: Path) -> None:
        own_postgres.start()
        assert mode_of(tmp_path / "postgres") == 0o700
        assert mode_of(tmp_path / "postgres" / ".s.PGSQL.5432") == 0o700
        assert psutil.Process(pid_of(own_postgres)).net_connections("inet") == []

    @pytest.mark.parametrize("folder", ["x" * 120, "a b, c'é%2F"])
    def test_runs_in_any_folder(self, tmp_path: Path, folder: str) -> None:
        postgres = LocalPostgres(tmp_path / folder, settings=QUICK)
        try:
            postgres.start()
            assert ask(postgres.url(), "SELECT 1") == 1
            socket_folder = Path(re.findall(r"host=([^&]+)", postgres.url())[0])
            assert socket_folder.parent == Path("/tmp")
            assert mode_of(socket_folder) == 0o700
        finally:
            postgres.stop()

    def test_recovers_after_a_kill_with_open_sessions(self, own_postgres: LocalPostgres) -> None:
        async def kill_under_a_session() -> None:
            connection = await asyncpg.connect(own_postgres.url())
            await connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
            os.kill(pid_of(own_postgres), signal.SIGKILL)
            connection.terminate()

        own_postgres.start()
        asyncio.run(kill_under_a_session())
        wait_until(lambda: not own_postgres.is_running())
        assert own_postgres.exit_code == -signal.SIGKILL

        own_postgres.start()
        assert ask(own_postgres.url(), "SELECT n FROM kept") == 1

    def test_starts_even_if_its_pid_file_names_another_process(
        self, own_postgres: LocalPostgres, tmp_path: Path
    ) -> None:
        own_postgres.start()
        own_postgres.stop()
        bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        try:
            (tmp_path / "postgres" / "postmaster.pid").write_text(f"{bystander.pid}\n")
            own_postgres.start()
            assert bystander.poll() is None
        finally:
            bystander.kill()
            bystander.wait()

    def test_starts_again_after_an_interrupted_first_start(self, own_postgres: LocalPostgres, tmp_path: Path) -> None:
        unfinished = tmp_path / "postgres.unfinished"
        unfinished.mkdir()
        (unfinished / "PG_VERSION").write_text("18\n")
        own_postgres.start()
        assert ask(own_postgres.url(), "SELECT 1") == 1
        assert not unfinished.exists()

    def test_reports_why_it_does_not_start(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recollect_local.postgres._LEFTOVER_SECONDS", 0.0)
        with pytest.raises(Unavailable, match='unrecognized configuration parameter "no_such_setting"'):
            LocalPostgres(tmp_path, settings={**QUICK, "no_such_setting": "1"}).start()


class TestValkey:
    def test_answers_redis_py_and_arq(self, own_valkey: LocalValkey) -> None:
        async def talk() -> tuple[bytes | None, bool]:
            async with Redis.from_url(own_valkey.url) as client:
                await client.set("word", "hello")
                pool = await arq.create_pool(RedisSettings.from_dsn(own_valkey.url))
                try:
                    return await client.get("word"), await pool.ping()
                finally:
                    await pool.aclose()

        own_valkey.start()
        assert asyncio.run(talk()) == (b"hello", True)

    def test_accepts_connections_of_its_owner_only(self, own_valkey: LocalValkey, tmp_path: Path) -> None:
        own_valkey.start()
        assert mode_of(tmp_path / "valkey") == 0o700
        assert mode_of(tmp_path / "valkey" / "valkey.sock") == 0o700
        assert psutil.Process(pid_of(own_valkey)).net_connections("inet") == []

    def test_starts_empty_after_a_stop_and_after_a_kill(self, own_valkey: LocalValkey, tmp_path: Path) -> None:
        async def remember() -> int:
            async with Redis.from_url(own_valkey.url) as client:
                await client.set("word", "hello")
                return int(await client.dbsize())

        for end in (own_valkey.stop, lambda: os.kill(pid_of(own_valkey), signal.SIGKILL)):
            own_valkey.start()
            assert asyncio.run(remember()) == 1
            end()
            wait_until(lambda: not own_valkey.is_running())
        assert list((tmp_path / "valkey").glob("*.rdb")) == []

    @pytest.mark.parametrize("folder", ["x" * 120, "a b, c'é%2F"])
    def test_runs_in_any_folder(self, tmp_path: Path, folder: str) -> None:
        async def ping(url: str) -> tuple[bool, bool]:
            pool = await arq.create_pool(RedisSettings.from_dsn(url))
            async with pool, Redis.from_url(url) as client:
                return await client.ping(), await pool.ping()

        server = LocalValkey(tmp_path / folder)
        try:
            server.start()
            assert asyncio.run(ping(server.url)) == (True, True)
        finally:
            server.stop()


class TestKilledStarter:
    @pytest.fixture
    def kill_starter(self, tmp_path: Path) -> Iterator[Callable[[str], list[int]]]:
        """Starts both servers in another process and kills that process; returns the servers' process ids."""
        servers: list[int] = []

        def start_and_kill(how: str) -> list[int]:
            command = [sys.executable, "-c", START_BOTH, str(tmp_path), how]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
                assert starter.stdout is not None
                servers.extend(map(int, starter.stdout.readline().split()))
                starter.kill()
            return servers

        yield start_and_kill
        for pid in servers:
            if not is_gone(pid):
                os.kill(pid, signal.SIGKILL)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent")
    def test_servers_end_with_their_starter(self, tmp_path: Path, kill_starter: Callable[[str], list[int]]) -> None:
        postgres, valkey = kill_starter("tied")
        wait_until(lambda: is_gone(postgres) and is_gone(valkey))
        assert "database system is shut down" in (tmp_path / "logs" / "postgres.log").read_text()

    def test_remaining_servers_are_replaced_by_the_next_start(
        self, own_postgres: LocalPostgres, own_valkey: LocalValkey, kill_starter: Callable[[str], list[int]]
    ) -> None:
        old_postgres, old_valkey = kill_starter("untied")
        assert not is_gone(old_postgres)
        assert not is_gone(old_valkey)
        ask(own_postgres.url(), "CREATE TABLE kept AS SELECT 1 AS n")

        own_postgres.start()
        own_valkey.start()
        wait_until(lambda: is_gone(old_postgres) and is_gone(old_valkey))
        assert ask(own_postgres.url(), "SELECT n FROM kept") == 1


class TestOrdinaryUser:
    """Even for root, the servers must not need root's rights."""

    @pytest.fixture
    def user(self) -> pwd.struct_passwd:
        return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())

    @pytest.fixture
    def folder(self, user: pwd.struct_passwd) -> Iterator[Path]:
        """Not below tmp_path, which pytest closes to other users repeatedly."""
        folder = Path(tempfile.mkdtemp(dir="/tmp"))
        os.chown(folder, user.pw_uid, user.pw_gid)
        yield folder
        shutil.rmtree(folder)

    @pytest.fixture
    def way_to_python(self) -> Iterator[None]:
        """For this test, let the user run our Python with our packages, which may have been installed for root
        alone.
        """
        if os.geteuid() != 0:
            yield
            return
        for folder in _installed():  # Every start of PostgreSQL does so permanently, and other tests need that.
            let_read(folder)
        needed = python_paths()
        wanted = {folder: 0o111 for path in needed for folder in path.parents}
        wanted |= {one: reading(one) for path in needed for one in within(path)}
        closed = {path: mode_of(path) for path in wanted if mode_of(path) & wanted[path] != wanted[path]}
        for path, mode in closed.items():
            path.chmod(mode | wanted[path])
        yield
        for path, mode in closed.items():
            path.chmod(mode)

    @pytest.mark.usefixtures("way_to_python")
    def test_runs_both_servers(self, user: pwd.struct_passwd, folder: Path) -> None:
        as_user: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [sys.executable, "-c", USE_BOTH, str(folder / "data")],
            capture_output=True,
            text=True,
            cwd="/",
            timeout=MAX_WAIT_SECONDS,
            env={**os.environ, "HOME": str(folder)},
            **(as_user if os.geteuid() == 0 else {}),
        )
        assert done.stdout.split() == [str(user.pw_uid), "recollect", "True"], done.stderr


class TestDemo:
    async def test_valid_keys_are_kept(self, settings: Settings, databases: Databases) -> None:
        keys = await prepare_demo(settings, DemoKeys())
        for key, scopes in ((keys.agent, KIND_SCOPES["agent"]), (keys.admin, frozenset(Scope))):
            assert key is not None
            caller = await authenticate(databases, key, pepper=settings.pepper)
            assert (caller.tenant, caller.scopes) == ("demo", scopes)
        assert await prepare_demo(settings, keys) == keys

    async def test_a_new_tenant_has_the_time_zone_of_the_machine(
        self, settings: Settings, db: Database, databases: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect_local.demo.DEMO_TENANT", "demo-elsewhere")
        keys = DemoKeys()
        for machine in ("Pacific/Auckland", "Europe/Berlin"):  # The second has no effect: the tenant is there.
            monkeypatch.setenv("TZ", machine)
            keys = await prepare_demo(settings, keys)
            caller = await authenticate(databases, str(keys.agent), pepper=settings.pepper)
            async with db.transaction(caller) as tx:
                assert (await own_tenant(tx)).time_zone == "Pacific/Auckland"

    async def test_an_invalid_key_is_replaced(
        self, settings: Settings, db: Database, databases: Databases, owner: asyncpg.Connection, tenant: Tenant
    ) -> None:
        pepper = settings.key_secret.get_secret_value().encode()
        revoked = (await prepare_demo(settings, DemoKeys())).admin
        assert revoked is not None
        await owner.execute("UPDATE api_keys SET revoked_at = now() WHERE hash = $1", hash_secret(revoked, pepper))
        async with db.transaction(operator_caller(tenant)) as tx:
            foreign = await create_key(tx, NewKey(name="another tenant's", kind="admin"), pepper=pepper)
        for useless in ("", "no key at all", revoked, foreign.secret):
            keys = await prepare_demo(settings, DemoKeys(useless, useless))
            for key in (keys.agent, keys.admin):
                assert key not in (None, useless)
                assert (await authenticate(databases, str(key), pepper=pepper)).tenant == "demo"


class TestSupervisor:
    """With small commands instead of gateway and worker."""

    @pytest.fixture
    def said(self) -> list[str]:
        return []

    @pytest.fixture
    def supervisor(self, said: list[str]) -> Iterator[Supervisor]:
        with Supervisor(said.append, most_crashes=3, first_delay_seconds=0.05) as supervisor:
            yield supervisor

    @staticmethod
    def server(folder: Path, program: str) -> CommandServer:
        return CommandServer(
            "Helper", [sys.executable, "-c", program], log=folder / "logs" / "helper.log", environment=os.environ
        )

    def test_restarts_a_killed_server(self, supervisor: Supervisor, said: list[str], tmp_path: Path) -> None:
        server = self.server(tmp_path, "print('at work', flush=True); import time; time.sleep(600)")
        supervisor.start(server)
        wait_until(lambda: server.log.read_text() == "at work\n")
        first = pid_of(server)
        os.kill(first, signal.SIGKILL)
        assert supervisor.watch(lambda: server.pid != first, timeout_seconds=MAX_WAIT_SECONDS)
        assert server.is_running()
        assert said == [
            f"Helper was killed by signal 9; last line of its log: at work (log: {server.log}). "
            "It will be restarted in 0.05 s.",
            f"Helper was restarted (process {server.pid}).",
        ]

    def test_gives_up_on_a_server_that_keeps_crashing(self, supervisor: Supervisor, tmp_path: Path) -> None:
        supervisor.start(self.server(tmp_path, "raise SystemExit('no such port')"))
        with pytest.raises(
            Unavailable, match=r"exit code 1; last line of its log: no such port .*crashed 4 times in a row"
        ):
            supervisor.watch(lambda: False, timeout_seconds=MAX_WAIT_SECONDS)
        assert len((tmp_path / "logs" / "helper.log").read_text().splitlines()) == 4

    def test_forgets_crashes_once_a_server_has_run_steadily(self, said: list[str], tmp_path: Path) -> None:
        server = self.server(tmp_path, "import time; time.sleep(0.3)")
        with Supervisor(said.append, most_crashes=1, first_delay_seconds=0.01, steady_seconds=0.2) as supervisor:
            supervisor.start(server)
            assert supervisor.watch(lambda: len(said) >= 6, timeout_seconds=MAX_WAIT_SECONDS)

    def test_stops_servers_with_sigterm_alone(self, tmp_path: Path) -> None:
        program = (
            "import signal, sys, time\n"
            "def note(number, frame):\n"
            "    print(number, flush=True)\n"
            "    if number == signal.SIGTERM: sys.exit()\n"
            "for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM): signal.signal(number, note)\n"
            "print('ready', flush=True)\n"
            "time.sleep(600)"
        )
        server = self.server(tmp_path, program)
        with Supervisor(print) as supervisor:
            supervisor.start(server)
            wait_until(lambda: server.log.read_text() == "ready\n")
            pid = pid_of(server)
            assert os.getsid(pid) == pid  # The terminal's Ctrl-C goes to our session only.
        assert is_gone(pid)
        assert server.log.read_text() == "ready\n15\n"

    def test_kills_a_server_that_ignores_sigterm_and_its_children(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = (
            "import signal, subprocess, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid, flush=True)\n"
            "time.sleep(600)"
        )
        monkeypatch.setattr(CommandServer, "stop_seconds", 0.2)
        server = self.server(tmp_path, program)
        with Supervisor(print) as supervisor:
            supervisor.start(server)
            wait_until(lambda: bool(server.log.read_text()))
            pid = pid_of(server)
        assert is_gone(pid)
        wait_until(lambda: is_gone(int(server.log.read_text())))

    def test_a_process_outlives_the_thread_that_started_it(self, tmp_path: Path) -> None:
        """The kernel would end a process with the thread that started it, unless that was the main thread."""
        started: list[subprocess.Popen[bytes]] = []
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        thread = threading.Thread(target=lambda: started.append(start_process(command, log=tmp_path / "log")))
        thread.start()
        thread.join()
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                started[0].wait(0.5)
        finally:
            started[0].kill()
            started[0].wait()

    def test_moves_a_large_log_aside(self, tmp_path: Path) -> None:
        log = tmp_path / "helper.log"
        log.write_bytes(b"x" * (10 * 1024 * 1024 + 1))
        start_process([sys.executable, "-c", "print('new')"], log=log).wait(MAX_WAIT_SECONDS)
        assert log.read_text() == "new\n"
        assert (tmp_path / "helper.log.1").stat().st_size > 10 * 1024 * 1024
