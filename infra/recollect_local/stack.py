"""`recollect local`: everything on one machine, started in order, watched, and stopped together."""

import asyncio
import errno
import http.client
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO
from urllib.parse import urlsplit

from pydantic import SecretStr

from recollect.errors import RecollectError, Unavailable
from recollect.settings import Settings, read_settings
from recollect.settings.addresses.public_url import local_url
from recollect.settings.unknown import unknown_settings
from recollect.text.control_characters import printable
from recollect_local.address import Endpoint, claimed_port
from recollect_local.command import CommandServer
from recollect_local.data_folder import DataFolder
from recollect_local.demo import DEMO_TENANT, prepare_demo, prepare_owner
from recollect_local.demo_keys import DemoKeys
from recollect_local.machine import Machine
from recollect_local.postgres import LocalPostgres
from recollect_local.process import last_words
from recollect_local.supervisor import Supervisor
from recollect_local.tuning import postgres_settings
from recollect_local.valkey import LocalValkey
from recollect_local.welcome import welcome

_READY_SECONDS = 120.0
_HEALTH_SECONDS = 2.0

_ADVICE = {
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "Recollect may not write there: change the owner or the mode of the folder, or choose another with --data-dir.",
    ),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "A folder is needed there: choose another with --data-dir."),
    errno.ENOSPC: "Free space there, or choose a folder on another disk with --data-dir.",
}
"""What to do about an error of the system that names a file."""


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Options of `recollect local`. Port 0 takes a free one; `data_dir` None is the user's data folder.

    `ready_file` holds, while everything is ready, JSON with `mcp_url`, `management_url`, `api_key`, `admin_key`,
    `tenant`.
    """

    data_dir: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8787
    ready_file: Path | None = None


def run_local(options: LocalOptions) -> int:
    """Run until Ctrl-C, SIGTERM or SIGHUP; return the exit code: 0, or 1 after an error that was printed.

    It starts PostgreSQL and Valkey, unless RECOLLECT_DATABASE_URL and RECOLLECT_REDIS_URL name others. Call it
    on the main thread: it takes the signals, and the servers end with the thread that started them.
    """
    with _stop_signals() as stopping:
        try:
            _run(options, stopping)
        except (RecollectError, OSError) as error:
            _echo(f"recollect local: {_plain(error)}", to=sys.stderr)
            return 1
    return 0


def _run(options: LocalOptions, stopping: threading.Event) -> None:
    settings = read_settings()
    for unknown in unknown_settings(Settings.model_fields, os.environ):
        _echo(f"recollect local: {unknown}", to=sys.stderr)
    folder = DataFolder(options.data_dir or settings.data_dir)
    with folder.locked() as lock, ExitStack() as claim, Supervisor(_echo) as supervisor:
        with claimed_port(options.host, options.port, until=claim) as port:
            address = local_url(options.host, port)
            lock.sign(address)
            _clear(options.ready_file)
            _echo(f"Recollect keeps its data in {folder.path}")
            settings = _start_stores(settings, folder, supervisor)
            _echo("Preparing the database")
            endpoint = _endpoint(address, _keys(settings, folder))
            settings = settings.model_copy(update={"local_owner": asyncio.run(prepare_owner(settings))})
        gateway = _start_processes(_environment(settings, options.host, port), folder, supervisor)
        if _wait_until_ready(gateway, endpoint, supervisor, stopping):
            _serve(endpoint, options, folder, supervisor, stopping)
        _echo("Stopping")


def _start_stores(settings: Settings, folder: DataFolder, supervisor: Supervisor) -> Settings:
    """Start PostgreSQL and Valkey, each unless the settings name another, and return settings that name them."""
    configured = settings.model_fields_set
    update: dict[str, object] = {}
    if "key_secret" not in configured:
        update["key_secret"] = SecretStr(folder.key_secret())
    if not configured & {"embedder", "database_url"}:
        update["embedder"] = folder.embedder(default=settings.embedder)
    if "database_url" not in configured:
        _echo("Starting PostgreSQL")
        postgres = LocalPostgres(folder.path, settings=postgres_settings(Machine.own()))
        supervisor.start(postgres)
        update |= {
            "database_url": postgres.url("recollect_app"),
            "owner_database_url": postgres.url(),
            "maintenance_database_url": postgres.url("recollect_maintenance"),
        }
    if "redis_url" not in configured:
        _echo("Starting Valkey")
        valkey = LocalValkey(folder.path)
        supervisor.start(valkey)
        update["redis_url"] = valkey.url
    return settings.model_copy(update=update)


def _keys(settings: Settings, folder: DataFolder) -> DemoKeys:
    keys = asyncio.run(prepare_demo(settings, folder.keys()))
    folder.keep_keys(keys)
    return keys


def _endpoint(address: str, keys: DemoKeys) -> Endpoint:
    assert keys.agent is not None
    assert keys.admin is not None
    return Endpoint(f"{address}/mcp", f"{address}/v1", keys.agent, DEMO_TENANT, keys.admin)


def _start_processes(environment: dict[str, str], folder: DataFolder, supervisor: Supervisor) -> CommandServer:
    """Start worker and gateway; return the gateway."""
    _echo("Starting gateway and worker")
    worker = _process("worker", "recollect_workers", environment, folder)
    gateway = _process("gateway", "recollect_gateway", environment, folder)
    for server in (worker, gateway):
        supervisor.start(server)
    return gateway


def _process(name: str, module: str, environment: dict[str, str], folder: DataFolder) -> CommandServer:
    return CommandServer(
        name.capitalize(), [sys.executable, "-m", module], log=folder.log(name), environment=environment
    )


def _environment(settings: Settings, host: str, port: int) -> dict[str, str]:
    """The environment of gateway and worker; the gateway also accepts requests for `host`, if it was given."""
    netloc = urlsplit(local_url(host, port)).netloc
    return {
        **os.environ,
        "RECOLLECT_DATABASE_URL": settings.database_url,
        "RECOLLECT_OWNER_DATABASE_URL": settings.migration_url,
        **({"RECOLLECT_MAINTENANCE_DATABASE_URL": url} if (url := settings.maintenance_database_url) else {}),
        "RECOLLECT_REDIS_URL": settings.redis_url,
        "RECOLLECT_KEY_SECRET": settings.key_secret.get_secret_value(),
        "RECOLLECT_EMBEDDER": settings.embedder,
        "RECOLLECT_LOCAL_OWNER": settings.local_owner,
        "RECOLLECT_DRAIN_SECONDS": "0",  # No load balancer has to notice that it stops.
        "RECOLLECT_FINISH_SECONDS": "8",  # The supervisor kills it after ten.
        "RECOLLECT_HOST": host,
        "RECOLLECT_PORT": str(port),
        "RECOLLECT_ALLOWED_HOSTS": json.dumps([*settings.allowed_hosts, netloc]),
    }


def _wait_until_ready(
    gateway: CommandServer, endpoint: Endpoint, supervisor: Supervisor, stopping: threading.Event
) -> bool:
    """True once the gateway is ready, False if a stop signal comes before.

    Raises Unavailable after two minutes, and if another gateway has its address.
    """
    if not supervisor.watch(lambda: stopping.is_set() or _is_ready(gateway, endpoint), timeout_seconds=_READY_SECONDS):
        raise Unavailable(
            f"The gateway was not ready within {_READY_SECONDS:.0f} s; last line of its log: {last_words(gateway.log)} "
            f"(log: {gateway.log})"
        )
    return not stopping.is_set()


def _is_ready(gateway: CommandServer, endpoint: Endpoint) -> bool:
    """Whether our own gateway is ready: another gateway may have the address while ours starts, and lacks our key.

    Raises Unavailable if another gateway answers. It gets one request, since it counts failed keys.
    """
    if not gateway.is_running() or _status(endpoint.management_url, "/health/ready") != http.client.OK:
        return False
    status = _status(endpoint.management_url, "/v1/tenant", Authorization=f"Bearer {endpoint.admin_key}")
    if status == http.client.UNAUTHORIZED:
        raise Unavailable(
            f"Another Recollect answers at {endpoint.management_url}. Stop it, or choose another port with --port."
        )
    return status == http.client.OK


def _status(address: str, path: str, **headers: str) -> int | None:
    """The status of a GET, or None without an answer. http.client uses no proxy: it reaches the gateway itself."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=_HEALTH_SECONDS)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    return None


def _serve(
    endpoint: Endpoint,
    options: LocalOptions,
    folder: DataFolder,
    supervisor: Supervisor,
    stopping: threading.Event,
) -> None:
    with folder.published(endpoint, options.ready_file):
        _echo(welcome(endpoint, data_dir=folder.path if options.data_dir else None))
        supervisor.watch(stopping.is_set)


def _clear(ready_file: Path | None) -> None:
    """Remove the file of an earlier start, which a program that waits for the file must not find."""
    if ready_file:
        ready_file.parent.mkdir(parents=True, exist_ok=True)
        ready_file.unlink(missing_ok=True)


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM and SIGHUP set. The current operation ends first."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    handled = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks that it be ignored
        handled.append(signal.SIGHUP)
    previous = {number: signal.signal(number, stop) for number in handled}
    try:
        yield stopping
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _plain(error: RecollectError | OSError) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. {_ADVICE.get(error.errno or 0, '')}".rstrip()
    return str(error)


def _echo(line: str, *, to: TextIO | None = None) -> None:
    with suppress(OSError):  # nobody may be reading any more, which must not keep us from stopping
        print(printable(line, lines=True), file=to, flush=True)
