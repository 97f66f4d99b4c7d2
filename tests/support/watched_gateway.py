"""The gateway in its own process, with a watched event loop: `python -m tests.support.watched_gateway`.

A heartbeat says how long the loop was held between two beats, in processor time, so that a machine that is busy with
other work counts for nothing: `loop` is what the loop's own thread computed; `process` what the whole process did,
where the beat was late as well, as it is while another thread keeps the interpreter's lock. `GET /held` tells the most
of each since it was asked last, the most memory that the process had resident since then, what it has now, and all its
processor time. It also tells how slow the machine is at this moment, by what a fixed computation takes.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from recollect.settings import Settings
from recollect.telemetry.logs import configure_logging
from recollect_gateway.__main__ import freeze_loaded_objects
from recollect_gateway.app import create_app
from recollect_http.server.uvicorn_server import server_config
from tests.support.gateway import RunningGateway
from tests.support.ports import reserved_port
from tests.support.timeouts import MAX_WAIT_SECONDS

BEAT_SECONDS = 0.002
HELD = "/held"

REFERENCE_SECONDS = 0.0009
"""Seconds of the fixed computation on the machine on which the bounds in docs/limits.md were measured."""

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = "5"
"""The value that makes Linux reset the peak memory of a process (proc(5))."""


@dataclass(frozen=True, slots=True)
class Held:
    """The longest time that the loop was held, and the use of the process so far, in processor seconds and bytes.

    `peak`: the most memory since it was asked last; `memory`: what it has now. `slowness`: how many times as long as
    where the bounds were measured the machine takes for the same, 1 at least.
    """

    loop: float
    process: float
    spent: float
    peak: int
    memory: int
    slowness: float


class Heartbeat:
    """Beats on the event loop, and records the longest time between two beats."""

    def __init__(self) -> None:
        self._loop, self._process = 0.0, 0.0
        self._last = self._times()

    def beat(self) -> None:
        """Compare this beat with the last, and schedule the next."""
        now = self._times()
        thread, process, wall = (later - earlier for later, earlier in zip(now, self._last, strict=True))
        self._loop, self._process = max(self._loop, thread), max(self._process, min(process, wall))
        self._last = self._times()
        asyncio.get_running_loop().call_later(BEAT_SECONDS, self.beat)

    def report(self) -> bytes:
        """The longest times since the last call."""
        peak, memory = _resident()
        _CLEAR.write_text(_PEAK)
        spent = time.process_time()
        report = {"loop": self._loop, "process": self._process, "spent": spent, "peak": peak, "memory": memory}
        report["slowness"] = max(1.0, _reference_seconds() / REFERENCE_SECONDS)
        self._loop = self._process = 0.0
        return json.dumps(report).encode()

    @staticmethod
    def _times() -> tuple[float, float, float]:
        return time.thread_time(), time.process_time(), time.perf_counter()


def watched(app: Any) -> Any:
    """An application with a heartbeat beside it."""
    heartbeat = Heartbeat()

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            heartbeat.beat()
        if scope.get("path") != HELD:
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": heartbeat.report()})

    return serve


@asynccontextmanager
async def watched_gateway(settings: Settings) -> AsyncIterator[RunningGateway]:
    """A watched gateway with these settings, until the block ends."""
    environment = os.environ | {
        f"RECOLLECT_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.model_dump(exclude_unset=True, mode="json").items()
    }
    with reserved_port() as port:
        environment["RECOLLECT_PORT"] = str(port)
        gateway = subprocess.Popen([sys.executable, "-m", __name__], env=environment)  # noqa: ASYNC220 - returns at once
        running = RunningGateway(f"http://127.0.0.1:{port}")
        try:
            async with running.http() as http:
                give_up = time.monotonic() + MAX_WAIT_SECONDS
                while not await _serves(http):
                    assert gateway.poll() is None, "the gateway did not start"
                    assert time.monotonic() < give_up, "the gateway did not start in time"
                    await asyncio.sleep(0.05)
            yield running
        finally:
            gateway.terminate()
            gateway.wait(MAX_WAIT_SECONDS)


async def read_heartbeat(http: httpx2.AsyncClient) -> Held:
    """How long the loop of a watched gateway was held since the last call."""
    return Held(**(await http.get(HELD)).json())


def _reference_seconds() -> float:
    """Processor time of a computation that is always the same: the least of three, so that noise counts little."""

    def once() -> float:
        started = time.thread_time()
        sum(number * number for number in range(20_000))
        return time.thread_time() - started

    return min(once() for _ in range(3))


def _resident() -> tuple[int, int]:
    """The peak of the resident memory of the process, and its present value, in bytes."""
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    told = {words[0]: int(words[1]) * 1024 for words in lines if words[0] in ("VmHWM:", "VmRSS:")}
    return told["VmHWM:"], told["VmRSS:"]


async def _serves(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/health/live")).status_code == 200
    except httpx2.TransportError:
        return False


if __name__ == "__main__":
    chosen = Settings()
    configure_logging(chosen)
    config = server_config(create_app(chosen, on_start=freeze_loaded_objects), chosen)
    config.app = watched(config.app)
    uvicorn.Server(config).run()
