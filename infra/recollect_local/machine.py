"""The memory that a server may use: that of the machine, or less in a container with a limit."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

MB, GB = 1 << 20, 1 << 30

_CGROUP = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is measured, nothing is written there


@dataclass(frozen=True, slots=True)
class Machine:
    """Bytes of memory, and of named shared memory: None if that has no bound of its own."""

    memory: int
    shared_memory: int | None = None

    @classmethod
    def own(cls) -> "Machine":
        """The machine, or the container, that this process is in."""
        limits = memory_limits(_CGROUP, _OWN_CGROUP)
        shared = shutil.disk_usage(_SHARED_MEMORY).total if _SHARED_MEMORY.is_dir() else None
        return cls(min([_installed_memory(), *limits]), shared)


def _installed_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_limits(hierarchy: Path, own: Path) -> list[int]:
    """Bytes that the control groups, of either version, allow this process, outermost first; empty without limits.

    `own` is the process's list of groups (`/proc/self/cgroup`), `hierarchy` where groups are mounted. A group's limit
    covers the groups below it, so every group on the path counts.
    """
    try:
        groups = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return []
    found: list[int] = []
    for _, controllers, path in groups:
        if controllers == "":
            found += _limits_on_path(hierarchy, path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _limits_on_path(hierarchy / "memory", path, "memory.limit_in_bytes")
    return found


def _limits_on_path(root: Path, path: str, name: str) -> list[int]:
    steps = [part for part in path.split("/") if part not in ("", "..")]
    folders = [root.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]
    return [limit for folder in folders if (limit := _limit(folder / name)) is not None]


def _limit(file: Path) -> int | None:
    """The number in the file; None if it has none, as with `max`."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
