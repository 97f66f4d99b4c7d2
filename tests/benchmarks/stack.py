"""Everything that is measured, in separate processes: PostgreSQL, Valkey, gateway, worker, and the echo server.

By default, PostgreSQL runs with the settings of `make run`, so that commits are on disk.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from recollect.settings import Settings
from recollect_local import tuning
from recollect_local.address import claimed_port
from recollect_local.command import CommandServer
from recollect_local.machine import Machine
from recollect_local.postgres import LocalPostgres
from recollect_local.server import Server
from recollect_local.valkey import LocalValkey

EMBEDDER: str = Settings.model_fields["embedder"].default
"""The embedder of all measurements of which recall is a part: the default one, since it is a part of what they cost."""

QUICK_EMBEDDER = "wordllama"
"""That of the others, whose graphs are filled in a tenth of the time."""

APP_LOGIN = "recollect_app"
WORKER_LOGIN = "benchmark_worker"
"""A login only for the worker, which distinguishes its sessions from the gateway's; its user must create it."""

_HOST = "127.0.0.1"
_GATEWAY = ["-m", "recollect_gateway"]
_ELSEWHERE = (
    "RECOLLECT_OWNER_DATABASE_URL",
    "RECOLLECT_MAINTENANCE_DATABASE_URL",
    "RECOLLECT_OTLP_ENDPOINT",
    "RECOLLECT_PREVIOUS_EMBEDDER",
)
"""Variables that could point to a database, a collector or an embedder of somebody."""
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Stack:
    """The addresses of all servers. `superuser_url` is for filling, cleaning and inspecting, never for measuring.

    Gateway and worker are not started at first, because they need a migrated database.
    """

    settings: Settings
    superuser_url: str
    gateway: Server
    worker: Server
    echo_port: int
    postgres: Server
    valkey: Server
    echo: Server

    async def serve(self, *, embeds: bool = True) -> None:
        """Start the gateway and, with `embeds`, the worker, and wait until the gateway answers.

        Raises RuntimeError if it ended or takes too long.
        """
        for server in (self.worker, self.gateway) if embeds else (self.gateway,):
            server.start()
        await _answers(self.gateway, self.settings.port)

    @asynccontextmanager
    async def another_gateway(
        self, name: str, database_url: str, **variables: str
    ) -> AsyncIterator[tuple[Server, int]]:
        """One more gateway, on a port of its own, with its own way to PostgreSQL; stopped at the end.

        `variables`: of its environment, beside the stack's.

        Raises RuntimeError if it ended or takes too long.
        """
        with claimed_port(_HOST, 0) as port:
            settings = self.settings.model_copy(update={"port": port, "database_url": database_url})
        gateway = _command(self.gateway.log.parent, name, _GATEWAY, _environment(settings) | variables)
        gateway.start()
        try:
            await _answers(gateway, port)
            yield gateway, port
        finally:
            gateway.stop()


async def _answers(gateway: Server, port: int) -> None:
    give_up = time.monotonic() + _START_SECONDS
    async with httpx2.AsyncClient() as http:
        while time.monotonic() < give_up and gateway.is_running():
            try:
                if (await http.get(f"http://{_HOST}:{port}/health/ready")).is_success:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise RuntimeError(f"{gateway.name} does not start: {gateway.log.read_text()[-2000:]}")


def require_running(server: Server) -> None:
    """Raise RuntimeError with the end of its log if a server ended, so that nobody waits for it forever."""
    if not server.is_running():
        raise RuntimeError(f"{server.name} ended; its log: {server.log.read_text()[-2000:]}")


@contextmanager
def running_stack(
    folder: Path,
    *,
    embedder: str = EMBEDDER,
    postgres_settings: Mapping[str, str] | None = None,
    worker_login: str = APP_LOGIN,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """Start the servers with their data and logs under `folder`; stop whatever runs at the end, last started first.

    `postgres_settings`: instead of those of the machine. `variables`: settings of the gateway beside those that every
    one here has.
    """
    with ExitStack() as stopping:
        own = tuning.postgres_settings(Machine.own()) if postgres_settings is None else postgres_settings
        postgres, valkey = LocalPostgres(folder, settings=own), LocalValkey(folder)
        for store in (postgres, valkey):
            stopping.callback(store.stop)
            store.start()
        with claimed_port(_HOST, 0) as port, claimed_port(_HOST, 0) as echo_port:
            settings = Settings(
                database_url=postgres.url(APP_LOGIN),
                owner_database_url=postgres.url(),
                maintenance_database_url=None,
                otlp_endpoint=None,
                redis_url=valkey.url,
                host=_HOST,
                port=port,
                embedder=embedder,
            )
        of_worker = settings.model_copy(update={"database_url": postgres.url(worker_login)})
        logs = folder / "logs"
        gateway = _command(logs, "gateway", _GATEWAY, {**_environment(settings), **(variables or {})})
        worker = _command(logs, "worker", ["-m", "recollect_workers"], _environment(of_worker))
        echo_program = str(Path(__file__).with_name("echo_server.py"))
        echo = _command(logs, "echo", [echo_program, str(echo_port)], os.environ)
        for server in (echo, worker, gateway):
            stopping.callback(server.stop)
        echo.start()
        yield Stack(settings, postgres.url(), gateway, worker, echo_port, postgres, valkey, echo)


def _command(logs: Path, name: str, arguments: list[str], environment: Mapping[str, str]) -> CommandServer:
    return CommandServer(name, [sys.executable, *arguments], log=logs / f"{name}.log", environment=environment)


def _environment(settings: Settings) -> dict[str, str]:
    """The environment of this machine without addresses: processes reach only servers that were started here."""
    return {
        **os.environ,
        **dict.fromkeys(_ELSEWHERE, ""),  # empty is unset
        "RECOLLECT_DATABASE_URL": settings.database_url,
        "RECOLLECT_REDIS_URL": settings.redis_url,
        "RECOLLECT_HOST": settings.host,
        "RECOLLECT_PORT": str(settings.port),
        "RECOLLECT_EMBEDDER": settings.embedder,
        "RECOLLECT_LOG_LEVEL": "WARNING",
    }
