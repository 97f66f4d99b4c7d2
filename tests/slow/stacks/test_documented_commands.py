"""Every command of the pages that newcomers follow is run as written there, against `recollect local`.

All blocks of a page marked `shell` or `python` are one script, from top to bottom. `stand_ins` lists the replacements;
`make` only prints what it would run, and a serving process is stopped once it is ready. `make run` is run by itself, at
a port as on the pages.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect_local.address import claimed_port
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.slow.stacks.test_local_stack import (
    ENVIRONMENT,
    RunningLocal,
    call_tool,
    press_ctrl_c,
    request,
    start,
    terminate,
    wait_until,
)
from tests.support.documented import ROOT, fences_of, script_of
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.long

BIN = Path(sys.executable).parent
FIXTURES = ROOT / "tests" / "fixtures"
BROKEN = {"mem0": ("results", 3), "zep": ("edges", 2)}
"""The broken items in the fixtures, which tests/unit/transfer/test_foreign_formats.py needs, and this file removes."""
PAGES_OF_MAKE_RUN = ("README.md", "docs/quick-start.md")
OF_README = "of_the_readme"
"""The database that the block for operators makes in the stack's cluster."""

# Serving commands are polled until they answer, and then stopped; every other command of `recollect` is run as it is.
_RECOLLECT = f"""#!{sys.executable}
import os, subprocess, sys, time, urllib.error, urllib.request
command = [sys.executable, "-m", "recollect_cli.main", *sys.argv[1:]]
asked = {{"gateway": os.environ["GATEWAY_READY"], "worker": os.environ["WORKER_READY"]}}.get(sys.argv[1])
if asked is None:
    os.execv(sys.executable, command)
process = subprocess.Popen(command)
for _ in range({int(MAX_WAIT_SECONDS / 0.2)}):
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(asked, timeout=5).close()
        break
    except (OSError, urllib.error.URLError):
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.2)
else:
    sys.exit("not ready")
process.terminate()
sys.exit(process.wait({MAX_WAIT_SECONDS}))
"""
_MAKE = f"""#!/bin/sh
exec {shutil.which("make")} --dry-run --directory={shlex.quote(str(ROOT))} "$@"
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLocal]:
    stack = start(tmp_path_factory.mktemp("stack"))
    yield stack
    assert stack.stop(terminate) == 0


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder like the root of the repository, as far as the pages use it, with files to import."""
    (tmp_path / ".venv").symlink_to(BIN.parent)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "bin").mkdir()
    psql = f'#!/bin/sh\nexec {shlex.quote(str(LocalPostgres(tmp_path).program("psql")))} "$@"\n'
    for name, script in (("recollect", _RECOLLECT), ("make", _MAKE), ("psql", psql)):
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    shutil.copy(FIXTURES / "memory.jsonl", tmp_path)
    for name, (part, broken) in BROKEN.items():
        export = json.loads((FIXTURES / "exports" / f"{name}.json").read_text())
        del export[part][broken]
        (tmp_path / f"{name}.json").write_text(json.dumps(export))
    return tmp_path


def stand_ins(script: str, stack: RunningLocal) -> str:
    """Replace the addresses and secrets of the page by those of this stack."""
    endpoint, data = stack.endpoint(), stack.folder / "data"
    postgres = LocalPostgres(data)
    roles = {"admin": "postgres"}
    script = script.replace("http://127.0.0.1:8787", endpoint["mcp_url"].removesuffix("/mcp"))
    script = script.replace("rcl_agent_…", endpoint["api_key"])
    script = script.replace("HOST=0.0.0.0", "HOST=127.0.0.1")
    script = script.replace("redis://cache.internal:6379/0", LocalValkey(data).url)
    script = script.replace("CREATE DATABASE recollect", f"CREATE DATABASE {OF_README}")  # The stack has the other one.

    def address(found: re.Match[str]) -> str:
        url = postgres.url(roles.get(found[1], found[1]))
        return shlex.quote(url.replace("/recollect?", f"/{OF_README if found[2] == 'recollect' else found[2]}?"))

    return re.sub(r"postgresql://(\w+)(?::\$\w+)?@db\.internal/(\w+)", address, script)


def run(page: str, stack: RunningLocal, desk: Path) -> str:
    """Run the script of the page at the desk, and return its output."""
    script = stand_ins(script_of(page), stack)
    assert "…" not in script, "something of it has no stand-in"
    with claimed_port("127.0.0.1", 0) as port, claimed_port("127.0.0.1", 0) as metrics:
        pass
    variables = {
        "PATH": f"{desk / 'bin'}:{BIN}:{os.environ['PATH']}",
        "RECOLLECT_DATA_DIR": str(stack.folder / "data"),
        "RECOLLECT_PORT": str(port),
        "RECOLLECT_METRICS_PORT": str(metrics),
        "GATEWAY_READY": f"http://127.0.0.1:{port}/health/ready",
        "WORKER_READY": f"http://127.0.0.1:{metrics}/metrics",
    }
    kept = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["sh", "-eux"], input=script, env={**kept, **variables}, cwd=desk, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_readme_works(stack: RunningLocal, desk: Path) -> None:
    said = run("README.md", stack, desk)
    assert "recollect local" in said, "what `make run` runs"
    assert next(fence.content for fence in fences_of((ROOT / "README.md").read_text()) if fence.info == "text") in said
    assert "All of it was found." in said
    assert "rcl_" in said, "the key that `keys create` printed"


def test_try_it_says_what_to_do_if_no_gateway_runs(tmp_path: Path) -> None:
    """Variables are named completely, so that one can type them."""
    command = [sys.executable, str(ROOT / "docs" / "try_it.py")]
    environment = {**ENVIRONMENT, "RECOLLECT_DATA_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for name in ("RECOLLECT_MCP_URL", "RECOLLECT_API_KEY", "RECOLLECT_DATA_DIR"):
        assert re.search(rf"\b{name}\b", done.stderr), done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_the_quick_start_works(stack: RunningLocal, desk: Path) -> None:
    said = run("docs/quick-start.md", stack, desk)
    assert "Ada prefers tea to coffee." in said
    assert "The quarterly report is due on Friday." in said
    assert '"isError":true' not in said
    everything = json.loads((desk / "everything.json").read_text())
    assert "Ada" in {entity["name"] for entity in everything["entities"]}


def test_make_run_serves_at_the_given_port(tmp_path: Path) -> None:
    """The real command, with the argument for another port; Ctrl-C stops it."""
    commands = [re.findall(r"`(make run ARGS=[^`]+)`", (ROOT / page).read_text()) for page in PAGES_OF_MAKE_RUN]
    assert commands[1:] == commands[:-1] == [['make run ARGS="--port 8800"']]
    with claimed_port("127.0.0.1", 0) as port:
        command = commands[0][0].replace("8800", str(port))
    kept = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("MAKE", "MFLAGS"))}
    console = tmp_path / "console"
    with console.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            cwd=ROOT,
            env={**kept, "RECOLLECT_DATA_DIR": str(tmp_path / "data")},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    published = tmp_path / "data" / "local.json"
    try:
        wait_until(lambda: "claude mcp add" in console.read_text() or process.poll() is not None)
        assert process.poll() is None, console.read_text()
        endpoint = json.loads(published.read_text())
        assert endpoint["mcp_url"] == f"http://127.0.0.1:{port}/mcp"
        assert call_tool(endpoint, "read_graph", {})["structuredContent"] == {"entities": [], "relations": []}
    finally:
        press_ctrl_c(process.pid)
        process.wait(MAX_WAIT_SECONDS)
    wait_until(lambda: not published.exists())
    assert "Traceback" not in console.read_text()


def test_the_migration_from_the_official_server_works(stack: RunningLocal, desk: Path) -> None:
    names = {json.loads(line).get("name") for line in (desk / "memory.jsonl").read_text().split("\n") if line}
    run("docs/migration/memory-server.md", stack, desk)
    assert names <= {json.loads(line).get("name") for line in (desk / "copy.jsonl").read_text().split("\n") if line}


@pytest.mark.parametrize(
    ("page", "entities"),
    [
        ("mem0", {"alex", "helpdesk", "cricket", "peanuts"}),
        ("zep", {"Kendra", "Adidas", "Puma", "Puma (b7e8f9a0)"}),
    ],
)
def test_the_migrations_from_mem0_and_zep_work(stack: RunningLocal, desk: Path, page: str, entities: set[str]) -> None:
    said = run(f"docs/migration/{page}.md", stack, desk)
    dry, real = [line for line in said.splitlines() if line.startswith("default: ")]
    assert dry == f"{real} (nothing was written)"
    assert "4 new entities" in real
    graph = call_tool(stack.endpoint(), "open_nodes", {"names": sorted(entities)})["structuredContent"]
    assert {entity["name"] for entity in graph["entities"]} == entities


def test_the_documented_client_configurations_reach_the_gateway(stack: RunningLocal) -> None:
    """Each file is well-formed, and its address and header list the tools."""
    text = stand_ins((ROOT / "docs/clients.md").read_text(), stack)
    key = stack.endpoint()["api_key"]
    text = re.sub(r"\$\{?\{?(?:env:|input:)?[\w-]+\}|\{env:\w+\}|\$RECOLLECT_API_KEY|rcl_…", key, text)
    reached = set()
    blocks = fences_of(text)
    assert len(blocks) == 12, "a section without a file that is tried"
    for block in blocks:
        if block.info == "shell":
            _, _, _, _, _, name, url, _, header = shlex.split(block.content)
            server: dict[str, Any] = {"url": url, "headers": dict([header.split(": ", 1)])}
        else:
            whole = tomllib.loads(block.content) if block.info == "toml" else json.loads(block.content)
            name, server = "recollect", _server_in(whole)
        if "command" in server:
            assert server["args"] == ["stdio"]
            server = {"url": server["env"]["RECOLLECT_URL"] + "/mcp", "bearer": server["env"]["RECOLLECT_API_KEY"]}
        if variable := server.get("bearer_token_env_var"):
            assert variable == "RECOLLECT_API_KEY"
            server["bearer"] = key
        headers = server.get("headers") or {"Authorization": f"Bearer {server['bearer']}"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        mcp = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        url = next(server[name] for name in ("url", "httpUrl", "serverUrl") if name in server)
        status, answer = request("POST", url, {**headers, **mcp, "MCP-Protocol-Version": "2025-11-25"}, body)
        assert (status, name) == (200, "recollect"), answer
        assert '"recall"' in answer
        reached.add(block.info)
    assert reached == {"shell", "json", "toml"}


def _server_in(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the server `recollect`, at any depth."""
    for name, value in settings.items():
        if name == "recollect":
            return dict(value)
        if isinstance(value, dict) and (found := _server_in(value)):
            return found
    return {}
