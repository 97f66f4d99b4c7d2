from pathlib import Path

from recollect_local.machine import GB, MB, Machine, memory_limits


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_memory_limits_include_those_of_enclosing_cgroups(tmp_path: Path) -> None:
    write(tmp_path / "own", "0::/pods/gateway\n")
    write(tmp_path / "memory.max", "max\n")
    write(tmp_path / "pods/memory.max", f"{2 * GB}\n")
    write(tmp_path / "pods/gateway/memory.max", f"{512 * MB}\n")
    assert memory_limits(tmp_path, tmp_path / "own") == [2 * GB, 512 * MB]


def test_the_memory_limit_of_cgroups_v1_is_found(tmp_path: Path) -> None:
    write(tmp_path / "own", "11:cpu,cpuacct:/docker/a\n7:memory:/docker/a\n")
    write(tmp_path / "memory/docker/a/memory.limit_in_bytes", f"{GB}\n")
    assert memory_limits(tmp_path, tmp_path / "own") == [GB]


def test_the_memory_limit_at_the_root_of_a_container_is_found(tmp_path: Path) -> None:
    """The cgroup of a container is the root of the mounted hierarchy, whatever its path on the host."""
    write(tmp_path / "own", "0::/../host/path\n")
    write(tmp_path / "memory.max", f"{GB}\n")
    assert memory_limits(tmp_path, tmp_path / "own") == [GB]


def test_there_is_no_memory_limit_without_cgroups(tmp_path: Path) -> None:
    assert memory_limits(tmp_path, tmp_path / "own") == []


def test_the_memory_of_this_machine_is_found() -> None:
    assert Machine.own().memory > 256 * MB
