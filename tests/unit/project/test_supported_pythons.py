"""Which releases of Python are supported: those for which every dependency has a wheel."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUPPORTED = ((3, 11), (3, 13))


@pytest.mark.parametrize(
    ("version", "taken"), [((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False)], ids=str
)
def test_make_refuses_an_unsupported_python_before_it_creates_anything(
    tmp_path: Path, version: tuple[int, int], taken: bool
) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$1" in -V) echo Python of tomorrow; exit;; -m) touch {tmp_path}/begun; exit 1;; esac\n'
        f"""exec {sys.executable} -c 'import sys; sys.version_info = {version}; exec(sys.argv[1])' "$2"\n"""
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
    assert ("needs Python 3.11, 3.12 or 3.13" in made.stdout) is not taken


def test_the_package_and_the_readme_name_the_same_versions() -> None:
    (first, last), package = SUPPORTED, tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert package["project"]["requires-python"] == f">={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"need Python {first[0]}.{first[1]} to {last[0]}.{last[1]} and" in readme
