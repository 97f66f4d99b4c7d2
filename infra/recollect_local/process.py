"""Child processes: a session of their own, output to a log file, a bounded end."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pwd import struct_passwd
from typing import TypedDict

from recollect.errors import Unavailable

_PR_SET_PDEATHSIG = 1
_LOG_BYTES = 10 * 1024 * 1024
_LOG_TAIL_BYTES = 4096


def start_process(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    account: struct_passwd | None = None,
    last_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start `command` with its output appended to `log`; as `account`, if it is given.

    It runs in a session of its own, so that the terminal's Ctrl-C does not reach it, and in `/`,
    so that neither a file beside the user nor a folder closed to `account` gets in its way. On Linux
    the kernel sends it `last_signal` when we die. That is tied to the starting *thread*, so
    it holds only for processes that the main thread starts.
    """
    _keep_log_bounded(log)
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment,
            start_new_session=True,
            **as_user(account),
            preexec_fn=_tie_to_parent(last_signal),
        )


def run_process(
    command: Sequence[str],
    *,
    script: str,
    environment: Mapping[str, str],
    account: struct_passwd | None,
    timeout_seconds: float,
) -> None:
    """Run `command` to its end, with `script` as its input. Raises Unavailable, with its words, if it fails."""
    try:
        subprocess.run(
            command,
            check=True,
            timeout=timeout_seconds,
            input=script,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment,
            start_new_session=True,
            **as_user(account),
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        words = " ".join(str(error.output or error).split())
        raise Unavailable(f"{Path(command[0]).name} failed: {words[-1000:]}") from error


def stop_process(
    process: subprocess.Popen[bytes], *, grace_seconds: float, stop_signal: signal.Signals = signal.SIGTERM
) -> None:
    """Ask `process` to end; after `grace_seconds` kill its whole session. Returns when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(stop_signal)
    try:
        process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_words(log: Path) -> str:
    """The last line of a log that is not blank, or an empty string."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class _User(TypedDict, total=False):
    """The arguments of subprocess that change the user."""

    user: int
    group: int
    extra_groups: list[int]


def as_user(account: struct_passwd | None) -> _User:
    """Arguments of subprocess that run a program as `account`; none without an account."""
    return _User(user=account.pw_uid, group=account.pw_gid, extra_groups=[]) if account else _User()


def _keep_log_bounded(log: Path) -> None:
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))


def _tie_to_parent(last_signal: signal.Signals) -> Callable[[], None] | None:
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: after the fork only the call itself is safe
    parent = os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, int(last_signal))
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)

    return tie
