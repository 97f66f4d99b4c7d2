"""The containers of the chart as processes of this machine, with nothing but the rendered environment.

There is no container engine, so a mount namespace makes the root read-only except for one folder, which replaces the
volume at `/tmp`. `python` and `recollect` are those of this environment.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import yaml

from recollect_local.postgres import LocalPostgres
from recollect_local.process import start_process, stop_process
from tests.verify.chart.rendering import EXAMPLES, Manifest, container_of

BIN = Path(sys.executable).parent
STOP_SECONDS = 30.0
RUN_SECONDS = 120

READ_ONLY = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,ro,bind / && cd / && exec "$@"'

Secrets = Mapping[tuple[str, str], str]
"""The contents of Secrets, by name and key."""


def environment(manifest: Manifest, secrets: Secrets, tmp: Path, **changed: object) -> dict[str, str]:
    """The variables of its container. `changed` are those with other values here, such as ports."""
    found = {"PATH": f"{BIN}:/usr/bin:/bin", "TMPDIR": str(tmp)}
    for entry in container_of(manifest)["env"]:
        if "valueFrom" in entry:
            reference = entry["valueFrom"]["secretKeyRef"]
            found[entry["name"]] = secrets[reference["name"], reference["key"]]
        else:  # `$(NAME)` is what the kubelet knows of before it.
            found[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda match: found[match[1]], entry.get("value", ""))
    if "HOME" in found:
        assert found["HOME"] == "/tmp"
        changed["HOME"] = tmp
    unknown = changed.keys() - found.keys()
    assert not unknown, f"the chart does not set {unknown}"
    return found | {name: str(value) for name, value in changed.items()}


def _command(manifest: Manifest, tmp: Path, scripts: Mapping[str, Path]) -> list[str]:
    """The command of its container, which can write only to `tmp`; `scripts` are the files of its ConfigMaps."""
    program, *arguments = container_of(manifest)["command"]
    arguments = [str(scripts.get(argument, argument)) for argument in arguments]
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    return [*unshare, "sh", "-c", READ_ONLY, str(tmp), str(BIN / program), *arguments]


def run(
    manifest: Manifest, variables: Mapping[str, str], tmp: Path, scripts: Mapping[str, Path] = {}
) -> subprocess.CompletedProcess[str]:
    """Run the container until it ends, as a Job."""
    command = _command(manifest, tmp, scripts)
    return subprocess.run(command, env=dict(variables), capture_output=True, text=True, timeout=RUN_SECONDS)


def started(
    manifest: Manifest, variables: Mapping[str, str], tmp: Path, log: Path, scripts: Mapping[str, Path] = {}
) -> subprocess.Popen[bytes]:
    """Start the container; the caller ends it."""
    return start_process(_command(manifest, tmp, scripts), log=log, environment=dict(variables))


@contextmanager
def running(
    manifest: Manifest, variables: Mapping[str, str], tmp: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the container, as in a Deployment, and end it as the kubelet does."""
    process = started(manifest, variables, tmp, log)
    try:
        yield process
    finally:
        stop_process(process, grace_seconds=STOP_SECONDS)


async def prepared_database(postgres: LocalPostgres, name: str) -> Callable[[str], str]:
    """Create a database as CloudNativePG would by the example; returns its address for each login."""
    cluster = next(yaml.safe_load_all((EXAMPLES / "cloudnative-pg.yaml").read_text()))
    initdb = cluster["spec"]["bootstrap"]["initdb"]
    superuser = await asyncpg.connect(postgres.url())
    await superuser.execute(f"CREATE DATABASE {name} OWNER {initdb['owner']}")
    await superuser.close()

    def address(login: str = "postgres") -> str:
        return postgres.url(login).replace("/recollect?", f"/{name}?")

    within = await asyncpg.connect(address())
    for statement in initdb["postInitApplicationSQL"]:
        await within.execute(statement)
    await within.close()
    return address


def lines(log: Path) -> list[dict[str, Any]]:
    """The lines of its log, which are JSON."""
    return [json.loads(line) for line in log.read_text().splitlines()]
