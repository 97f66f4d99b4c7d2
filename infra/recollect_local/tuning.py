"""Settings of PostgreSQL for a machine that it shares with gateway, worker, and other programs of its owner."""

from recollect_local.machine import GB, MB, Machine

_SHARED_BUFFERS = (128 * MB, 4 * GB)
_WORK = (4 * MB, 32 * MB)
_MAINTENANCE = (64 * MB, 512 * MB)
_LOG = (1 * GB, 4 * GB)

_ROOM_FOR_HELPERS = 256 * MB
"""Named shared memory. A container's 64 MB are less than a parallel index build or hash join may take."""


def postgres_settings(machine: Machine) -> dict[str, str]:
    """Server settings for a machine, by PostgreSQL's names.

    An eighth of the memory is the server's own cache, half of what guides give a machine that does nothing else: people
    run this beside an editor and a browser. It is taken as it fills: a small database takes little of a large machine.
    """
    memory = machine.memory
    return {
        "shared_buffers": _megabytes(memory // 8, _SHARED_BUFFERS),
        "effective_cache_size": f"{max(256, memory // 2 // MB)}MB",
        "work_mem": _megabytes(memory // 512, _WORK),
        "maintenance_work_mem": _megabytes(memory // 32, _MAINTENANCE),
        # The first change of a page after a checkpoint writes all of it into the log: fewer of them, and packed.
        "max_wal_size": _megabytes(memory // 8, _LOG),
        "checkpoint_timeout": "15min",
        "wal_compression": "pglz",
        # Queries here are short: to compile one takes longer than to run it. Sessions of the service say so, too.
        "jit": "off",
        # A large table is tidied after a tenth of it changed, not a fifth.
        "autovacuum_vacuum_scale_factor": "0.1",
        "autovacuum_vacuum_insert_scale_factor": "0.1",
        # A session that plans a recall locks every vector index there is (docs/capacity.md).
        "max_locks_per_transaction": "256",
        # What is in the cache is noted every five minutes and at the end; the next start reads it back, beside calls.
        "shared_preload_libraries": "pg_prewarm",
        "pg_prewarm.autoprewarm": "on",
        **(_without_helpers() if _is_cramped(machine) else {}),
    }


def _is_cramped(machine: Machine) -> bool:
    return machine.shared_memory is not None and machine.shared_memory < _ROOM_FOR_HELPERS


def _without_helpers() -> dict[str, str]:
    """Processes that work at one statement together share named memory: where that is short, statements would fail."""
    return {"max_parallel_workers_per_gather": "0", "max_parallel_maintenance_workers": "0"}


def _megabytes(value: int, bounds: tuple[int, int]) -> str:
    least, most = bounds
    return f"{max(least, min(value, most)) // MB}MB"
