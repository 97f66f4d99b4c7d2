"""The image as Debian's buildah makes it of infra/Dockerfile by the command of docs/image.md, and commands run in it.

buildah needs no container engine. The base image is made here, of Debian's own packages: Debian 13 with pip, and with
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

# What `buildah run` has no option for: the root read-only but for /tmp. In a mount namespace of its own, so that
# nothing stays mounted; `exec`, so that signals reach the program.
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
    """buildah, with images and containers of its own under a folder."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """How it is called."""
        program = shutil.which("buildah")
        assert program, "install Debian's package buildah"
        places = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        return [program, *places, "--storage-driver", "vfs"]

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """What it says to these arguments."""
        return _run([*self.command, *arguments], check=check)


@dataclass(frozen=True, slots=True)
class Image:
    """The image, and a container of it that stands for all: nothing of it is changed."""

    buildah: Buildah
    container: str
    root: Path
    config: Mapping[str, Any]
    layers: list[int]
    """The sizes of its layers in bytes, unpacked, its base's first."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment that it sets."""
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, as the image says: by its user, in its folder, with its environment."""
        return self.buildah("run", "--isolation", "chroot", self.container, "--", *command, check=check)

    def sealed(self, *command: str) -> list[str]:
        """The command as one of this machine, on a root of which all but /tmp is read-only."""
        place = [str(self.root), self.config["User"], self.config["WorkingDir"]]
        return ["unshare", "--mount", "sh", "-c", _SEALED, "sh", *place, *command]

    def run_sealed(
        self, *command: str, check: bool = True, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it so to its end."""
        return _run(self.sealed(*command), check=check, env={**self.variables, **(more or {})})


def build(folder: Path) -> Image:
    """Make the base, and build on it what the page says."""
    buildah = Buildah(folder)
    _make_base(buildah)
    _run(["sh", "-eux", "-c", script_of("docs/image.md")], cwd=ROOT, env=_lending(buildah))
    told = json.loads(buildah("inspect", "--type", "image", "recollect").stdout)
    container = buildah("from", "recollect").stdout.strip()
    root = Path(buildah("mount", container).stdout.strip())
    layers = [layer["size"] for layer in json.loads(told["Manifest"])["layers"]]
    return Image(buildah, container, root, json.loads(told["Config"])["config"], layers)


def _make_base(buildah: Buildah) -> None:
    """What the base image is: a small Debian 13 with Python where that image has it."""
    files = buildah.folder / "base.tar"
    _run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(files)])
    container = buildah("from", "scratch").stdout.strip()
    buildah("add", "--quiet", container, str(files), "/")
    files.unlink()
    buildah("run", "--isolation", "chroot", container, "--", "ln", "-s", "/usr/bin/python3", "/usr/local/bin/python")
    buildah("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", container)
    buildah("commit", "--quiet", "--rm", container, BASE)


def _lending(buildah: Buildah) -> dict[str, str]:
    """An environment in which `buildah bud` builds on our base, with what this machine needs to reach the registries.

    It is mounted over folders that the base has, so that no layer keeps any of it.
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
        f'#!/bin/sh\nset -eu\ntest "$1" = bud\nshift\nexec {" ".join([*buildah.command, "bud", *options])} "$@"\n'
    )
    ours.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}


def _run(
    command: list[str], *, check: bool = True, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done
