"""The client's wheel: the package alone, with its types and licence, and two dependencies."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from recollect_client import __version__

PACKAGE = Path(__file__).parents[3] / "shared" / "recollect_client"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, which is built from the source distribution, as `pip` does for those who have no wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)],
        cwd=PACKAGE,
        check=True,
        capture_output=True,
    )
    [source] = folder.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", str(source)], cwd=folder, check=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=folder / source.name.removesuffix(".tar.gz"),
        check=True,
        capture_output=True,
    )
    [built] = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_it_has_every_module_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    modules = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*.py")}
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == modules | {"recollect_client/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_it_needs_two_packages(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("METADATA")]
    lines = wheel.read(name).decode().splitlines()
    needed = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert [line.split()[1].partition("<")[0].partition(">")[0] for line in needed] == ["httpx2", "msgspec"]
    assert f"Version: {__version__}" in lines
    assert (PACKAGE / "LICENSE").read_bytes() == (PACKAGE.parents[1] / "LICENSE").read_bytes()
