"""The image, built by Debian's buildah from infra/Dockerfile with the command of docs/image.md, and commands run in it.

buildah needs no container engine. The base image is built here from Debian's packages: Debian 13 with pip, and with
Python as `/usr/local/bin/python`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.documented import ROOT, script_of

PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
BASE = "localhost/python"
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
REGISTRY_VARIABLES = ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")

# `buildah run` has no option for a root that is read-only except for /tmp. The mount namespace ends with the command,
# so nothing stays mounted; `exec` lets signals reach the program.
_SEALED = """
set -e
root=$1 user=$2 folder=$3; shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec chroot --userspec="$user" "$root" /usr/bin/env -C "$folder" "$@"
"""


@dataclass(frozen=True, slots=True)
class Buildah:
    """buildah, with its own images and containers in a folder."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """The beginning of each command."""
        program = shutil.which("buildah")
        assert program, "install Debian's package buildah"
        places = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        return [program, *places, "--storage-driver", "vfs"]

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run buildah with these arguments."""
        return _run([*self.command, *arguments], check=check)


@dataclass(frozen=True, slots=True)
class Image:
    """The image, and one container of it for all tests, in which nothing is changed."""

    buildah: Buildah
    container: str
    root: Path
    config: Mapping[str, Any]
    layers: list[int]
    """The unpacked sizes of its layers in bytes, that of the base first."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that the image sets."""
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command until it ends, with the user, the folder and the environment of the image."""
        return self.buildah("run", "--isolation", "chroot", self.container, "--", *command, check=check)

    def sealed(self, *command: str) -> list[str]:
        """The command for this machine that runs it on a root which is read-only except for /tmp."""
        place = [str(self.root), self.config["User"], self.config["WorkingDir"]]
        return ["unshare", "--mount", "sh", "-c", _SEALED, "sh", *place, *command]

    def run_sealed(
        self, *command: str, check: bool = True, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the sealed command until it ends."""
        return _run(self.sealed(*command), check=check, env={**self.variables, **(more or {})})


def build(folder: Path) -> Image:
    """Build the base image, and on it the image, with the command of the page."""
    buildah = Buildah(folder)
    environment = building(buildah)
    _run(["sh", "-eux", "-c", script_of("docs/image.md")], cwd=ROOT, env=environment)
    inspected = json.loads(buildah("inspect", "--type", "image", "recollect").stdout)
    container = buildah("from", "recollect").stdout.strip()
    root = Path(buildah("mount", container).stdout.strip())
    layers = [layer["size"] for layer in json.loads(inspected["Manifest"])["layers"]]
    return Image(buildah, container, root, json.loads(inspected["Config"])["config"], layers)


def building(buildah: Buildah) -> dict[str, str]:
    """An environment in which the command `buildah` builds on a base image that was made here."""
    _make_base(buildah)
    return _build_environment(buildah)


def _make_base(buildah: Buildah) -> None:
    """Build the base image: a small Debian 13 with Python at the usual place of Python images."""
    files = buildah.folder / "base.tar"
    _run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(files)])
    container = buildah("from", "scratch").stdout.strip()
    buildah("add", "--quiet", container, str(files), "/")
    files.unlink()
    buildah("run", "--isolation", "chroot", container, "--", "ln", "-s", "/usr/bin/python3", "/usr/local/bin/python")
    buildah("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", container)
    buildah("commit", "--quiet", "--rm", container, BASE)


def _build_environment(buildah: Buildah) -> dict[str, str]:
    """An environment in which `buildah bud` builds on our base, with this machine's access to the registries.

    The access is mounted over folders of the base, so that no layer contains any of it.
    """
    home, programs = buildah.folder / "home", buildah.folder / "bin"
    settings = [
        f"{name.removeprefix('PIP_')} = {os.environ[name]}" for name in REGISTRY_VARIABLES if name in os.environ
    ]
    (home / ".config" / "pip").mkdir(parents=True)
    if "PIP_CERT" in os.environ:
        shutil.copy(os.environ["PIP_CERT"], home / "pip.crt")
        settings.append("cert = /root/pip.crt")
    (home / ".config" / "pip" / "pip.conf").write_text("\n".join(["[global]", *settings, ""]))
    volumes = [f"{home}:/root:ro", *([f"{BUNDLE}:{BUNDLE}:ro"] if BUNDLE.exists() else [])]
    options = [*(f"--volume={volume}" for volume in volumes), f"--build-arg=PYTHON={BASE}"]
    programs.mkdir()
    ours = programs / "buildah"
    ours.write_text(
        "#!/bin/sh\nset -eu\nverb=$1\nshift\n"
        f'test "$verb" = bud || exec {" ".join(buildah.command)} "$verb" "$@"\n'
        f'exec {" ".join([*buildah.command, "bud", *options])} "$@"\n'
    )
    ours.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}


def _run(
    command: list[str], *, check: bool = True, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done
