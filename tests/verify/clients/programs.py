"""How the programs of `python/` and `node/` are run: with the packages that `make verify` installed for each."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.support.gateway import eventually
from tests.support.oauth import RedirectedPerson
from tests.support.web_server import plain, web_server
from tests.verify.node import node

HERE = Path(__file__).parent
RUN_SECONDS = 120
YES = b"y\n"
"""What a person enters whom a client asks in the terminal whether to open a browser."""

_BROWSER = """#!{python}
import sys, urllib.parse, urllib.request
urllib.request.urlopen("{person}?url=" + urllib.parse.quote(sys.argv[-1], safe="")).read()
"""
"""A browser for clients that start one: it hands the address to the person of the test."""


@dataclass(frozen=True)
class Program:
    """A client. `packages`: the virtual environment of its packages, or None for those of npm.

    `signs_in`: whether it has an OAuth flow that needs no code of ours but storage and redirects.
    """

    name: str
    packages: str | None
    signs_in: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.packages, *self.environment.values())))

    def command(self) -> list[str]:
        """The command that runs it; fails if its packages are not installed."""
        if self.packages is None:
            script, installed = HERE / "node" / f"{self.name}.mjs", HERE / "node" / "node_modules"
            executable = node()
        else:
            script, installed = HERE / "python" / f"{self.name}.py", HERE / ".venvs" / self.packages
            executable = sys.executable if self.packages == OWN else str(installed / "bin" / "python")
        if self.packages != OWN and not installed.exists():
            pytest.fail(f"The packages of {self.name} are missing. Run `make verify`, which installs them.")
        return [executable, str(script)]


OWN = "own"
"""The packages of Recollect itself."""

UNHEARD = "http://127.0.0.1:33418/callback"
"""The redirect address of programs that do not listen, but take it from the answer (`errand`)."""


@dataclass(frozen=True)
class Found:
    """The names of the tools that a client listed, and the texts of the answers to its calls."""

    tools: list[str]
    answers: list[str]


@asynccontextmanager
async def asking(person: RedirectedPerson) -> AsyncIterator[str]:
    """An address that has the person open `?url=`, and answers where they were sent; loopback addresses are opened."""

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        asked = parse_qs(urlsplit(head.split(b" ")[1].decode()).query)["url"][0]
        landed = await person.visit(asked)
        await plain(landed.encode(), "Content-Type: text/plain")(head, writer)
        await writer.drain()
        if not landed.startswith(UNHEARD):
            await eventually(lambda: _is_opened(landed))

    async with web_server(answer) as server:
        yield f"http://127.0.0.1:{server.port}/"


async def _is_opened(landed: str) -> bool:
    """Whether the client took the person back. Some begin to listen only after they have started the browser."""
    async with httpx2.AsyncClient() as client:
        try:
            await client.get(landed)
        except httpx2.ConnectError:
            return False
    return True


async def run(program: Program, errand: Mapping[str, Any], folder: Path) -> Found:
    """Run a client; fails with what it printed if it does not end well."""
    browser = folder / "xdg-open"
    browser.write_text(_BROWSER.format(python=sys.executable, person=errand["person"]))
    browser.chmod(0o755)
    process = await asyncio.create_subprocess_exec(
        *program.command(),
        json.dumps(errand),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(program, folder, browser),
        cwd=folder,
    )
    try:
        async with asyncio.timeout(RUN_SECONDS):
            output, errors = await process.communicate(YES)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode() + errors.decode()
    return Found(**json.loads(output.decode().splitlines()[-1]))


def _environment(program: Program, folder: Path, browser: Path) -> dict[str, str]:
    """The environment of a client: a home of its own, and a browser that is the person of the test."""
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "TMPDIR")}
    return {
        **kept,
        "HOME": str(folder),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "BROWSER": str(browser),
        "DISPLAY": ":0",  # Some clients start a browser only where there is a screen.
        "MCP_REMOTE_CONFIG_DIR": str(folder),
        "NO_PROXY": "127.0.0.1,localhost",
        **program.environment,
    }
