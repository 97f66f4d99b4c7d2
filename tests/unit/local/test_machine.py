from pathlib import Path

from recollect_local.machine import GB, MB, Machine, memory_limits


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_finds_the_limits_of_a_group_and_of_those_around_it(tmp_path: Path) -> None:
    write(tmp_path / "own", "0::/pods/gateway\n")
    write(tmp_path / "memory.max", "max\n")
    write(tmp_path / "pods/memory.max", f"{2 * GB}\n")
    write(tmp_path / "pods/gateway/memory.max", f"{512 * MB}\n")
    assert memory_limits(tmp_path, tmp_path / "own") == [2 * GB, 512 * MB]


def test_finds_the_limit_of_the_first_version(tmp_path: Path) -> None:
    write(tmp_path / "own", "11:cpu,cpuacct:/docker/a\n7:memory:/docker/a\n")
    write(tmp_path / "memory/docker/a/memory.limit_in_bytes", f"{GB}\n")
    assert memory_limits(tmp_path, tmp_path / "own") == [GB]


def test_finds_the_limit_that_a_container_sees_as_its_root(tmp_path: Path) -> None:
    """A container's group is the root of what is mounted, whatever the path that the host knows it by."""
    write(tmp_path / "own", "0::/../host/path\n")
    write(tmp_path / "memory.max", f"{GB}\n")
    assert memory_limits(tmp_path, tmp_path / "own") == [GB]


def test_finds_no_limit_without_groups(tmp_path: Path) -> None:
    assert memory_limits(tmp_path, tmp_path / "own") == []


def test_knows_the_machine_it_runs_on() -> None:
    assert Machine.own().memory > 256 * MB
