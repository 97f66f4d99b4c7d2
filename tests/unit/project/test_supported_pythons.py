"""Which releases of Python are supported: those for which every dependency has a wheel."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from recollect_local.platforms import FIRST, LAST

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("version", "taken"), [((3, 10), False), ((3, 11), True), ((3, 14), True), ((3, 15), False)], ids=str
)
def test_make_refuses_an_unsupported_python_before_it_creates_anything(
    tmp_path: Path, version: tuple[int, int], taken: bool
) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$1" in -m) touch {tmp_path}/begun; exit 1;; esac\n'
        f"exec {sys.executable} -c 'import runpy, sys; sys.version_info = {version};"
        ' runpy.run_path(sys.argv[1], run_name="__main__")\' "$1"\n'
    )
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "setup", f"PYTHON={python}", f"VENV={tmp_path}/venv"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"},
        capture_output=True,
        text=True,
    )
    assert (tmp_path / "begun").exists() is taken
    assert ("needs Python 3.11 to 3.14" in made.stderr) is not taken


def test_every_place_names_the_same_versions() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert package["project"]["requires-python"] == f">={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}"
    stated = f"Python {FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"
    for page in ("README.md", "Makefile", "docs/quick-start.md", "docs/install.md"):
        assert stated in " ".join((ROOT / page).read_text().split()), page


def test_ci_runs_each_supported_version() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    tested = jobs["supported"]["strategy"]["matrix"]["python"]
    [whole] = [step["with"]["python-version"] for step in jobs["test"]["steps"] if "setup-python" in str(step)]
    assert sorted([*tested, whole]) == [f"{FIRST[0]}.{minor}" for minor in range(FIRST[1], LAST[1] + 1)]
