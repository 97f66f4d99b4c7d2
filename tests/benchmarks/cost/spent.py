"""Processor time of everything that a call keeps busy, by what it belongs to."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from recollect_local.server import Server
from tests.benchmarks.processes import LoginSessions, processor_seconds
from tests.benchmarks.stack import WORKER_LOGIN, Stack

_LOOKING_ON = "postgres"
"""The login of those who fill, look and wait, which no call pays for."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds. `postgres` is all of the server but what its sessions did for the worker (`worker_postgres`)."""

    gateway: float = 0.0
    postgres: float = 0.0
    worker: float = 0.0
    worker_postgres: float = 0.0
    valkey: float = 0.0
    echo: float = 0.0

    @property
    def all_servers(self) -> float:
        """All but the echo."""
        return self.gateway + self.postgres + self.worker + self.worker_postgres + self.valkey

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(*(mine - its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def per(self, times: float) -> "Spent":
        """Divided by a number of calls, or of seconds."""
        return Spent(*(figure / times for figure in astuple(self)))


class Meter:
    """Tells what was spent until now; a difference tells what was spent between."""

    def __init__(self, stack: Stack) -> None:
        self._stack, self._postmaster = stack, _pid(stack.postgres)
        self._for_worker = LoginSessions(self._postmaster, WORKER_LOGIN)
        self._looking_on = LoginSessions(self._postmaster, _LOOKING_ON)

    def spent(self, gateways: Sequence[Server]) -> Spent:
        """Since everything was started, with these of the gateways."""
        stack, for_worker = self._stack, self._for_worker.seconds()
        return Spent(
            gateway=sum(processor_seconds(_pid(gateway)) for gateway in gateways),
            postgres=processor_seconds(self._postmaster) - for_worker - self._looking_on.seconds(),
            worker=processor_seconds(_pid(stack.worker)),
            worker_postgres=for_worker,
            valkey=processor_seconds(_pid(stack.valkey)),
            echo=processor_seconds(_pid(stack.echo)),
        )


def _pid(server: Server) -> int:
    if server.pid is None:
        raise RuntimeError(f"{server.name} does not run")
    return server.pid
