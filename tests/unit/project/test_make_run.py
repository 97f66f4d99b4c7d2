"""`make run` installs what runs, and the tools for development only where they are there already."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def planned(venv: Path) -> str:
    """The commands that `make run` would run with this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    command = ["make", "--dry-run", "run", f"VENV={venv}"]
    return subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=True).stdout


def test_a_new_environment_gets_no_tools_for_development(tmp_path: Path) -> None:
    commands = planned(tmp_path / "venv")
    assert "-r infra/locks/local.txt -r infra/locks/build.txt" in commands
    assert "dev.txt" not in commands


def test_an_environment_for_development_stays_one(tmp_path: Path) -> None:
    (tmp_path / ".installed").touch()
    assert "infra/locks" not in planned(tmp_path)
    os.utime(tmp_path / ".installed", (0, 0))  # The lock is newer.
    assert "-r infra/locks/dev.txt" in planned(tmp_path)
