"""The wheel contains every package with its types, its SQL and its data."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Paths in the wheel, which is built as `pip` builds it from pyproject.toml."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_marked_as_typed(shipped: set[str], package: str) -> None:
    assert f"{Path(package).name}/py.typed" in shipped


@pytest.mark.parametrize("package", PACKAGES)
def test_each_file_of_a_package_is_shipped(shipped: set[str], package: str) -> None:
    folder = ROOT / package
    sources = {
        str(path.relative_to(folder.parent))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources - shipped == set()
