"""The processor time of all processes that a call keeps busy, by their roles."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from recollect_local.server import Server
from tests.benchmarks.processes import LoginSessions, processor_seconds
from tests.benchmarks.stack import WORKER_LOGIN, Stack

_LOOKING_ON = "postgres"
"""The login for filling, inspecting and waiting, which does not count for any call."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds. `postgres` is the whole server without the sessions of the worker (`worker_postgres`)."""

    gateway: float = 0.0
    postgres: float = 0.0
    worker: float = 0.0
    worker_postgres: float = 0.0
    valkey: float = 0.0
    echo: float = 0.0

    @property
    def all_servers(self) -> float:
        """The seconds of all servers without the echo server."""
        return self.gateway + self.postgres + self.worker + self.worker_postgres + self.valkey

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(*(mine - its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def per(self, times: float) -> "Spent":
        """The seconds divided by a number of calls or seconds."""
        return Spent(*(figure / times for figure in astuple(self)))


class Meter:
    """Measures the time spent until now; the difference of two results is the time between them."""

    def __init__(self, stack: Stack) -> None:
        self._stack, self._postmaster = stack, _pid(stack.postgres)
        self._for_worker = LoginSessions(self._postmaster, WORKER_LOGIN)
        self._looking_on = LoginSessions(self._postmaster, _LOOKING_ON)

    def spent(self, gateways: Sequence[Server]) -> Spent:
        """The time since everything was started, with these gateways."""
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
