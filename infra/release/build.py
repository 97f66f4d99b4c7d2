"""Builds everything that a release publishes, into one folder.

    pypi/      wheel and source distribution of recollect, and of recollect-client
    npm/       the package of the TypeScript client
    chart/     the Helm chart
    image/     the image for this machine's architecture, as `docker load` takes it
    locks/     the exact dependencies that were tested, with their hashes
    sbom/      what the wheel needs, as CycloneDX
    server.json, SHA256SUMS

The same commit gives the same bytes, except for the image: times come from the commit.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.registry import server_json
from release.version_files import ROOT, version

_LOCKS = ROOT / "infra" / "locks"
_TOOLS = ROOT / "tests" / "verify" / "tools" / ".venv" / "bin"
_HELM = ROOT / "tests" / "verify" / "tools" / ".bin" / "helm"
_CLIENT, _TYPESCRIPT_CLIENT = ROOT / "shared" / "recollect_client", ROOT / "shared" / "recollect_client_ts"


class Missing(Exception):
    """A program that building needs is not there; the message says how to get it."""


def build(folder: Path, *, image: bool = True) -> None:
    """Build everything into the folder, whose earlier content goes. Raises Missing before anything is built."""
    if image and not shutil.which("buildah"):
        raise Missing("The image needs buildah (Debian's package buildah). Without the image: --without-image")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("pypi", "chart", "locks", "sbom"):
        (folder / part).mkdir(parents=True)
    _build_python(ROOT, folder / "pypi")
    if _CLIENT.exists():
        _build_python(_CLIENT, folder / "pypi")
    if _TYPESCRIPT_CLIENT.exists():
        _build_npm(_TYPESCRIPT_CLIENT, folder / "npm")
    _run([_HELM, "package", ROOT / "helm" / "recollect", "--destination", folder / "chart"])
    for lock in ("local.txt", "runtime.txt"):
        shutil.copy(_LOCKS / lock, folder / "locks")
    _list_contents(folder / "sbom" / f"recollect-{version()}.cdx.json")
    if image:
        _build_image(folder / "image")
    (folder / "server.json").write_text(json.dumps(server_json(), indent=2) + "\n")
    _write_checksums(folder)


def _build_python(source: Path, folder: Path) -> None:
    """The source distribution, and the wheel, by the locked build backend of this environment."""
    command: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", folder]
    _run(command, folder=source, environment={"SOURCE_DATE_EPOCH": _commit_time()})


def _build_npm(source: Path, folder: Path) -> None:
    folder.mkdir()
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], folder=source)
    _run(["npm", "run", "build"], folder=source)
    _run(["npm", "pack", "--ignore-scripts", "--pack-destination", folder], folder=source)


def _list_contents(file: Path) -> None:
    """The software bill of materials of the wheel with its extras: each locked dependency with its hashes."""
    how = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(file)]
    project = ROOT / "pyproject.toml"
    _run([_TOOLS / "cyclonedx-py", "requirements", "--pyproject", project, *how, _LOCKS / "local.txt"])


def _build_image(folder: Path) -> None:
    folder.mkdir()
    name = f"recollect:{version()}"
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    labels = [f"--build-arg=VERSION={version()}", f"--build-arg=REVISION={revision.stdout.strip()}"]
    how = ["--isolation", "chroot", "--format", "docker", "-f", "infra/Dockerfile", "-t", name, *labels]
    _run(["buildah", "bud", *how, "."])
    _run(["buildah", "push", name, f"docker-archive:{folder / f'recollect-{version()}.tar'}:{name}"])


def _write_checksums(folder: Path) -> None:
    """`SHA256SUMS`, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def _commit_time() -> str:
    """When this commit was made, in seconds since 1970; the time in archives."""
    shown = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def _run(command: Sequence[str | Path], *, folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    """Run a command, which prints as it likes. Raises CalledProcessError if it fails."""
    words = [str(word) for word in command]
    print("+", " ".join(words), flush=True)
    subprocess.run(words, cwd=folder, env={**os.environ, **(environment or {})}, check=True)
