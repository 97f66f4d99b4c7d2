"""The files that contain the version. pyproject.toml is authoritative; the others follow it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

_VERSION = r"(\d+\.\d+\.\d+)"
_VERSION_PATTERNS = (
    ("pyproject.toml", rf'^version = "{_VERSION}"$'),
    ("shared/recollect/__init__.py", rf'^__version__ = "{_VERSION}"$'),
    ("shared/recollect_client/version.py", rf'^__version__ = "{_VERSION}"$'),
    ("shared/recollect_client_ts/package.json", rf'^  "version": "{_VERSION}",$'),
    ("shared/recollect_client_ts/package-lock.json", rf'^  "version": "{_VERSION}",$'),
    (
        "shared/recollect_client_ts/package-lock.json",
        rf'^      "name": "recollect-client",\n      "version": "{_VERSION}",$',
    ),
    ("shared/plugins/gemini-extension.json", rf'^  "version": "{_VERSION}",$'),
    ("shared/plugins/recollect/.claude-plugin/plugin.json", rf'^  "version": "{_VERSION}",$'),
    ("shared/plugins/recollect/.codex-plugin/plugin.json", rf'^  "version": "{_VERSION}",$'),
    ("helm/recollect/Chart.yaml", rf"^version: {_VERSION}$"),
    ("helm/recollect/Chart.yaml", rf'^appVersion: "{_VERSION}"$'),
    ("infra/Dockerfile", rf"^ARG VERSION={_VERSION}$"),
    ("docs/image.md", rf"--build-arg VERSION={_VERSION} "),
)
"""Files of the tree, and the pattern of the version in each. A client's count where the client exists."""


def version() -> str:
    """The version of this tree, as pyproject.toml has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def found_versions(root: Path = ROOT) -> dict[str, set[str]]:
    """What each place says: the place as `file: pattern`, and the versions there; an empty set where none is found."""
    return {
        f"{file}: {pattern}": set(re.findall(pattern, (root / file).read_text(), flags=re.MULTILINE))
        for file, pattern in _VERSION_PATTERNS
        if (root / file).exists()
    }


def set_version(new: str, root: Path = ROOT) -> None:
    """Write the version to all places. Raises ValueError for one that is not of three numbers."""
    if not re.fullmatch(_VERSION, new):
        raise ValueError(f"{new!r} is no version of three numbers, such as 1.2.0.")
    for file, pattern in _VERSION_PATTERNS:
        path = root / file
        if path.exists():
            path.write_text(re.sub(pattern, lambda found: _with(found, new), path.read_text(), flags=re.MULTILINE))


def _with(found: "re.Match[str]", new: str) -> str:
    start = found.start(1) - found.start()
    return found[0][:start] + new + found[0][start + len(found[1]) :]
