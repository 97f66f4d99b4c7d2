import pytest

from recollect_local.machine import GB, MB, Machine
from recollect_local.tuning import postgres_settings


def megabytes(machine: Machine, name: str) -> int:
    return int(postgres_settings(machine)[name].removesuffix("MB"))


@pytest.mark.parametrize(
    ("memory", "cache", "work", "maintenance"),
    [
        (512 * MB, 128, 4, 64),
        (2 * GB, 256, 4, 64),
        (16 * GB, 2_048, 32, 512),
        (1_024 * GB, 4_096, 32, 512),
    ],
)
def test_the_cache_is_an_eighth_of_the_memory_within_bounds(
    memory: int, cache: int, work: int, maintenance: int
) -> None:
    machine = Machine(memory)
    assert megabytes(machine, "shared_buffers") == cache
    assert megabytes(machine, "work_mem") == work
    assert megabytes(machine, "maintenance_work_mem") == maintenance


def test_the_settings_leave_half_of_a_small_machine_free() -> None:
    """The cache, three vacuums, and two sorts in each of twenty sessions are half of 2 GB."""
    small = Machine(2 * GB)
    most = megabytes(small, "shared_buffers") + 3 * megabytes(small, "maintenance_work_mem")
    assert most + 40 * megabytes(small, "work_mem") <= 1_024


def test_parallel_queries_are_off_where_shared_memory_is_small() -> None:
    helped = {"max_parallel_workers_per_gather", "max_parallel_maintenance_workers"}
    assert helped <= postgres_settings(Machine(2 * GB, shared_memory=64 * MB)).keys()
    assert not helped & postgres_settings(Machine(2 * GB, shared_memory=1 * GB)).keys()
    assert not helped & postgres_settings(Machine(2 * GB)).keys()
