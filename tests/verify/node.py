"""Node.js, and the packages that npm installed beside this file. A missing tool fails the run; nothing is skipped."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

LEAST_NODE = 22
MODULES = Path(__file__).parent / "node_modules"


def node() -> str:
    """The path of a Node.js that is new enough: the copy from npm, or that of the machine."""
    for candidate in [*map(str, sorted(MODULES.glob("node-*/bin/node"))), shutil.which("node")]:
        if candidate and _major(candidate) >= LEAST_NODE:
            return candidate
    pytest.fail(f"Node.js {LEAST_NODE} or newer is missing. Run `make verify`, or install it and put it on the PATH.")


def script(package: str) -> str:
    """The path of the main script of an npm package; fails if the package is not installed."""
    path = MODULES / package / "dist" / "index.js"
    if not path.exists():
        pytest.fail(f"The npm package {package} is missing. Run `make verify`, which installs it (npm is needed).")
    return str(path)


def _major(executable: str) -> int:
    try:
        output = subprocess.run(
            [executable, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    version = re.match(r"v(\d+)\.", output)
    return int(version[1]) if version else 0
