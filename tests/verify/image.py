"""infra/Dockerfile carried out without a container engine: its steps in roots made by Debian's own bootstrap.

What a base image would bring is Debian 13 with Python as `/usr/local/bin/python` and pip: `bootstrap` makes that. Each
RUN line is run in a chroot of its stage; COPY takes only what `.dockerignore` lets through.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "infra" / "Dockerfile"
IGNORED = ("__pycache__", "*.pyc")
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
LENT = ("/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf")
REGISTRY_VARIABLES = {"PIP_INDEX_URL", "PIP_CERT", "PIP_DEFAULT_TIMEOUT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}

# In a mount namespace of its own, so that nothing stays mounted; `exec`, so that signals reach the program.
_ENTER = """
set -e
root=$1 user=$2 folder=$3 sealed=$4; shift 4
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
if [ "$sealed" = yes ]; then
    mount -o remount,bind,ro "$root"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
fi
exec chroot --userspec="$user" "$root" /usr/bin/env -C "$folder" "$@"
"""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile: `RUN`, and what stands behind it."""

    keyword: str
    said: str


@dataclass
class Stage:
    """A stage as it becomes: its files under `root`, and what its instructions set."""

    root: Path
    variables: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin"})
    folder: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)

    def command(self, command: Sequence[str], *, sealed: bool = False) -> list[str]:
        """The command as one of this machine. `sealed`: all but /tmp is read-only, as by `docker run --read-only`."""
        place = [str(self.root), self.user, self.folder, "yes" if sealed else "no"]
        return ["unshare", "--mount", "sh", "-c", _ENTER, "sh", *place, *command]

    def run(
        self, *command: str, sealed: bool = False, check: bool = True, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command here to its end, as the stage's user."""
        done = subprocess.run(
            self.command(command, sealed=sealed),
            env={**self.variables, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done


def instructions(text: str) -> Iterator[Instruction]:
    """The instructions of a Dockerfile without comments, each continued line joined to the one before."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for joined in "\n".join(lines).replace("\\\n", " ").splitlines():
        keyword, _, said = joined.strip().partition(" ")
        yield Instruction(keyword, said.strip())


def bootstrap(target: Path) -> None:
    """Make what the base image is: a small Debian 13 with Python where that image has it."""
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(target)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (target / "usr/local/bin/python").symlink_to("/usr/bin/python3")


def build(base: Path, into: Path) -> Stage:
    """Carry out the Dockerfile on copies of the base; the last stage."""
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for one in instructions(DOCKERFILE.read_text()):
        if one.keyword == "FROM":
            _, _, name = one.said.split()
            stage = stages[name] = Stage(into / name)
            shutil.copytree(base, stage.root, symlinks=True, ignore=shutil.ignore_patterns("proc", "dev"))
            for folder in ("proc", "dev"):
                (stage.root / folder).mkdir(exist_ok=True)
        elif stage is None:
            assert one.keyword == "ARG", one  # The base, which `bootstrap` has made.
        else:
            _carry_out(stage, one, stages)
    assert stage is not None
    return stage


def context() -> list[str]:
    """What `.dockerignore` lets through: paths in the tree."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*", "everything is kept back that is not named"
    return [line.removeprefix("!") for line in lines if line.startswith("!")]


def _carry_out(stage: Stage, one: Instruction, stages: Mapping[str, Stage]) -> None:
    match one.keyword:
        case "ENV" | "ARG":
            stage.variables |= _pairs(one.said, stage.variables)
        case "WORKDIR":
            stage.folder = one.said
            (stage.root / one.said.strip("/")).mkdir(parents=True, exist_ok=True)
        case "USER":
            stage.user = one.said
        case "COPY":
            _copy(stage, one.said, stages)
        case "RUN":
            with _reaching_registries(stage.root) as more:
                stage.run("sh", "-c", one.said, more=more)
        case "ENTRYPOINT":
            stage.entrypoint = [word.strip('" ') for word in one.said.strip("[]").split(",")]
        case _:
            assert one.keyword in {"LABEL", "EXPOSE", "CMD", "HEALTHCHECK"}, one


def _pairs(said: str, known: Mapping[str, str]) -> dict[str, str]:
    pairs = (word.split("=", 1) for word in said.split())
    return {name: Template(value).safe_substitute(known) for name, value in pairs}


def _copy(stage: Stage, said: str, stages: Mapping[str, Stage]) -> None:
    *sources, target = said.split()
    place = stage.root / os.path.join(stage.folder, target).lstrip("/")
    if sources[0].startswith("--from="):
        source = stages[sources.pop(0).removeprefix("--from=")].root
        shutil.copytree(source / sources[0].lstrip("/"), place, symlinks=True)
        return
    for name in sources:
        assert any(name == kept or name.startswith(f"{kept}/") for kept in context()), f"{name} is kept back"
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns(*IGNORED))
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place)


@contextmanager
def _reaching_registries(root: Path) -> Iterator[dict[str, str]]:
    """What this machine needs to reach the package registries, lent to a root for one step; the variables for it."""
    kept: dict[Path, bytes | None] = {}
    for file in LENT:
        place = root / file.lstrip("/")
        kept[place] = place.read_bytes() if place.exists() else None
        place.write_bytes(Path(file).read_bytes())
    try:
        yield {name: value for name, value in os.environ.items() if name.upper() in REGISTRY_VARIABLES}
    finally:
        for place, before in kept.items():
            place.unlink() if before is None else place.write_bytes(before)
