"""Settings of PostgreSQL on a machine that it shares with gateway, worker, and other programs of the user."""

from recollect_local.machine import GB, MB, Machine

_SHARED_BUFFERS = (128 * MB, 4 * GB)
_WORK = (4 * MB, 32 * MB)
_MAINTENANCE = (64 * MB, 512 * MB)
_LOG = (1 * GB, 4 * GB)

_SHARED_MEMORY_OF_PARALLEL_WORKERS = 256 * MB
"""Named shared memory. A container's 64 MB are less than a parallel index build or hash join may take."""


def postgres_settings(machine: Machine) -> dict[str, str]:
    """Server settings for a machine, by PostgreSQL's names.

    An eighth of the memory is the server's own cache, half of what guides recommend for a dedicated machine: people run
    this beside an editor and a browser. The memory is taken as the cache fills: a small database takes little.
    """
    memory = machine.memory
    return {
        "shared_buffers": _megabytes(memory // 8, _SHARED_BUFFERS),
        "effective_cache_size": f"{max(256, memory // 2 // MB)}MB",
        "work_mem": _megabytes(memory // 512, _WORK),
        "maintenance_work_mem": _megabytes(memory // 32, _MAINTENANCE),
        # The first change of a page after a checkpoint logs the whole page: so fewer checkpoints, and compression.
        "max_wal_size": _megabytes(memory // 8, _LOG),
        "checkpoint_timeout": "15min",
        "wal_compression": "pglz",
        # Queries here are short: compiling one takes longer than running it. Sessions of the service set it, too.
        "jit": "off",
        # Vacuum a large table after a tenth of it has changed, not a fifth.
        "autovacuum_vacuum_scale_factor": "0.1",
        "autovacuum_vacuum_insert_scale_factor": "0.1",
        # A session that plans a recall locks every vector index there is (docs/capacity.md).
        "max_locks_per_transaction": "256",
        # The list of cached pages is saved every five minutes and at the end; the next start reads them beside calls.
        "shared_preload_libraries": "pg_prewarm",
        "pg_prewarm.autoprewarm": "on",
        **(_without_parallel_workers() if _is_cramped(machine) else {}),
    }


def _is_cramped(machine: Machine) -> bool:
    return machine.shared_memory is not None and machine.shared_memory < _SHARED_MEMORY_OF_PARALLEL_WORKERS


def _without_parallel_workers() -> dict[str, str]:
    """Parallel workers of one statement share named memory: if that is short, statements would fail."""
    return {"max_parallel_workers_per_gather": "0", "max_parallel_maintenance_workers": "0"}


def _megabytes(value: int, bounds: tuple[int, int]) -> str:
    least, most = bounds
    return f"{max(least, min(value, most)) // MB}MB"
