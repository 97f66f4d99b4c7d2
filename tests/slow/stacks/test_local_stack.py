"""`recollect local` from outside: how it starts, refuses, heals and stops. Every wait is bounded."""

import http.client
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest

from recollect.errors import Unavailable
from recollect_local.address import Endpoint
from recollect_local.command import CommandServer
from recollect_local.postgres import LocalPostgres
from recollect_local.stack import _is_ready, _wait_until_ready
from recollect_local.supervisor import Supervisor
from recollect_local.valkey import LocalValkey
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.long

READY_SECONDS = STOP_SECONDS = MAX_WAIT_SECONDS
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}


@dataclass(frozen=True, slots=True)
class RunningLocal:
    """A `recollect local` under test. `console` receives what it prints."""

    process: subprocess.Popen[bytes]
    folder: Path
    console: Path

    @property
    def ready_file(self) -> Path:
        return self.folder / "ready.json"

    @property
    def console_text(self) -> str:
        return self.console.read_text()

    def endpoint(self) -> dict[str, str]:
        return dict(json.loads(self.ready_file.read_text()))

    def children(self) -> dict[str, psutil.Process]:
        """Its servers, by what their command lines name."""
        names = {"postgres -D": "PostgreSQL", "valkey-server": "Valkey"}
        names |= {"recollect_gateway": "Gateway", "recollect_workers": "Worker"}
        found = {}
        for child in psutil.Process(self.process.pid).children():
            if child.status() != psutil.STATUS_ZOMBIE:
                line = " ".join(child.cmdline())
                found[next(name for part, name in names.items() if part in line)] = child
        return found

    def stop(self, send: Callable[[int], None]) -> int:
        """End it with `send(pid)`; the exit code."""
        send(self.process.pid)
        return self.process.wait(STOP_SECONDS)


def launch(
    folder: Path, *options: str, data: Path | None = None, environment: Mapping[str, str] | None = None
) -> RunningLocal:
    """Start `recollect local` as a shell would, as leader of a process group; with `folder`/data by default."""
    (folder / "ready.json").unlink(missing_ok=True)  # a start that was killed has left its own
    files = ["--data-dir", str(data or folder / "data"), "--ready-file", str(folder / "ready.json")]
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            [sys.executable, "-m", "recollect_cli.main", "local", *files, *options],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, **(environment or {})},
            process_group=0,
        )
    return RunningLocal(process, folder, folder / "console")


def start(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> RunningLocal:
    """Start it and wait until it is ready."""
    stack = launch(folder, "--port", "0", *options, environment=environment)
    try:
        wait_until(lambda: stack.ready_file.exists() or stack.process.poll() is not None, READY_SECONDS)
        assert stack.process.poll() is None, stack.console_text
    except BaseException:
        stack.stop(terminate)
        raise
    return stack


def refusal(folder: Path, *options: str, data: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The output of a stack that refuses to start, without a traceback and with exit code 1."""
    stack = launch(folder, *options, data=data, environment=environment)
    try:
        assert stack.process.wait(STOP_SECONDS) == 1, stack.console_text
    finally:
        if stack.process.poll() is None:
            stack.stop(terminate)
    assert "Traceback" not in stack.console_text
    assert not stack.ready_file.exists()
    return stack.console_text


def printed_by(stack: RunningLocal, *options: str) -> str:
    """What `recollect local` prints about the stack that runs, in another process."""
    return command_output("local", "--data-dir", str(stack.folder / "data"), *options, environment=ENVIRONMENT)


def command_output(*words: str, environment: Mapping[str, str]) -> str:
    """The output of a command that succeeds."""
    command = [sys.executable, "-m", "recollect_cli.main", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def terminate(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def press_ctrl_c(pid: int) -> None:
    os.killpg(pid, signal.SIGINT)  # a terminal sends it to the whole group


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def wait_until(holds: Callable[[], bool], seconds: float = MAX_WAIT_SECONDS) -> None:
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, f"still not so after {seconds} s"
        time.sleep(0.05)


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(processes: Collection[psutil.Process]) -> None:
    wait_until(lambda: all(map(is_gone, processes)))


def request(method: str, url: str, headers: Mapping[str, str], body: str | None = None) -> tuple[int, str]:
    """Status and body of one HTTP request."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=MAX_WAIT_SECONDS)
    try:
        connection.request(method, parts.path, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def is_ready(endpoint: Mapping[str, str]) -> bool:
    try:
        return request("GET", endpoint["mcp_url"].removesuffix("/mcp") + "/health/ready", {})[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def message_in(body: str) -> dict[str, Any]:
    """The one JSON-RPC message of a reply, which is plain JSON or an event stream."""
    events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    return dict(json.loads(events[0] if events else body))


def call_tool(endpoint: Mapping[str, str], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of one of the official memory server's tools."""
    headers = {
        "Authorization": f"Bearer {endpoint['api_key']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    status, body = request("POST", endpoint["mcp_url"] + "/x/memory", headers, json.dumps(call))
    assert status == 200, body
    result = message_in(body)["result"]
    assert not result.get("isError"), body
    return dict(result)


def remember_entity(endpoint: Mapping[str, str], name: str) -> None:
    entity = {"name": name, "entityType": "trial", "observations": [f"{name} was remembered"]}
    call_tool(endpoint, "create_entities", {"entities": [entity]})


def entity_names(endpoint: Mapping[str, str]) -> list[str]:
    graph = call_tool(endpoint, "read_graph", {})["structuredContent"]
    return sorted(entity["name"] for entity in graph["entities"])


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLocal]:
    """One stack for the tests that leave it running."""
    stack = start(tmp_path_factory.mktemp("stack"))
    yield stack
    assert stack.stop(terminate) == 0


class TestStart:
    def test_the_ready_file_has_the_address_and_the_key(self, stack: RunningLocal) -> None:
        endpoint = stack.endpoint()
        base = endpoint["mcp_url"].removesuffix("/mcp")
        assert base.startswith("http://127.0.0.1:")
        assert endpoint == {
            "mcp_url": f"{base}/mcp",
            "management_url": f"{base}/v1",
            "api_key": endpoint["api_key"],
            "tenant": "demo",
            "admin_key": endpoint["admin_key"],
        }
        assert is_ready(endpoint)

    def test_other_commands_find_the_stack_in_its_data_folder(self, stack: RunningLocal) -> None:
        assert json.loads((stack.folder / "data" / "local.json").read_text()) == stack.endpoint()
        wait_until(lambda: f"export RECOLLECT_DATA_DIR={stack.folder / 'data'}\n" in stack.console_text)

    @pytest.mark.proves("security: local-data-folder")
    def test_only_the_owner_can_read_the_secrets(self, stack: RunningLocal) -> None:
        data = stack.folder / "data"
        secrets = [stack.ready_file, *(data / name for name in ("local.json", "api-key", "admin-key", "key-secret"))]
        assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}

    @pytest.mark.proves("security: printed-keys")
    def test_the_key_for_agents_writes_memory_and_only_the_other_administers(self, stack: RunningLocal) -> None:
        endpoint = stack.endpoint()
        remember_entity(endpoint, "Scope")
        assert "Scope" in entity_names(endpoint)
        statuses = {}
        for name in ("api_key", "admin_key"):
            bearer = {"Authorization": f"Bearer {endpoint[name]}"}
            statuses[name] = request("GET", f"{endpoint['management_url']}/keys", bearer)[0]
        assert statuses == {"api_key": 403, "admin_key": 200}

    @pytest.mark.proves("security: printed-keys")
    def test_nothing_that_is_pasted_into_a_file_has_a_key(self, stack: RunningLocal) -> None:
        endpoint = stack.endpoint()
        for text in (stack.console_text, printed_by(stack, "--clients")):
            assert f"export RECOLLECT_API_KEY={endpoint['api_key']}\n" in text
            assert text.count(endpoint["api_key"]) == 1
        assert endpoint["admin_key"] not in stack.console_text
        assert text.count(endpoint["admin_key"]) == 1
        assert text.index("The key for administration") < text.index(endpoint["admin_key"])

    def test_an_owner_is_invited_and_can_have_passkeys(self, stack: RunningLocal) -> None:
        link = printed_by(stack, "--invite", "ada@example.com").strip()
        port = urlsplit(stack.endpoint()["mcp_url"]).port
        assert link.startswith(f"http://localhost:{port}/join/")
        status, page = request("GET", link, {})
        assert (status, "invited as <strong>owner</strong>" in page) == (200, True)
        assert "data-passkey" in request("GET", f"http://localhost:{port}/sign-in", {})[1]

    def test_one_click_opens_the_console_as_the_owner_of_the_demo(self, stack: RunningLocal) -> None:
        base = stack.endpoint()["mcp_url"].removesuffix("/mcp")
        with httpx2.Client(base_url=base, headers={"Origin": base}, timeout=MAX_WAIT_SECONDS) as browser:
            first = browser.get("/").text
            assert "Open the demo as its owner" in first
            [token] = set(re.findall(r'name="form_token" value="(\w+)"', first))
            opened = browser.post("/sign-in/local", data={"form_token": token}, follow_redirects=True)
        assert (opened.status_code, opened.url.path) == (200, "/app/demo/default/memory")

    def test_commands_of_operators_reach_it(self, stack: RunningLocal) -> None:
        environment = {**ENVIRONMENT, "RECOLLECT_DATA_DIR": str(stack.folder / "data")}
        for words, told in ((("tenants", "list"), "demo"), (("keys", "list", "demo"), "recollect local, agent")):
            assert told in command_output(*words, environment=environment)

    def test_the_printed_curl_command_recalls(self, stack: RunningLocal) -> None:
        text = printed_by(stack, "--clients")
        lines = text[text.index("curl --fail-with-body -sS ") : text.index("The key for administration")]
        lines = lines.replace("$RECOLLECT_API_KEY", stack.endpoint()["api_key"])
        _, _, _, url, *options = shlex.split(lines.replace("\\\n", ""))
        given = list(zip(options[::2], options[1::2], strict=True))
        headers = dict(value.split(": ", 1) for option, value in given if option == "-H")
        status, body = request("POST", url, headers, dict(given)["-d"])
        assert status == 200, body
        assert "memories" in json.loads(body)

    def test_the_printed_client_settings_are_complete(self, stack: RunningLocal) -> None:
        endpoint, text = stack.endpoint(), printed_by(stack, "--clients")
        cursor, vs_code = (
            json.JSONDecoder().raw_decode(text, text.index(opening))[0]
            for opening in ('{\n  "mcpServers"', '{\n  "inputs"')
        )
        by_variable = {"Authorization": "Bearer ${env:RECOLLECT_API_KEY}"}
        assert cursor == {"mcpServers": {"recollect": {"url": endpoint["mcp_url"], "headers": by_variable}}}
        (asked,) = vs_code["inputs"]
        assert asked["password"] is True
        by_input = {"Authorization": f"Bearer ${{input:{asked['id']}}}"}
        assert vs_code["servers"] == {"recollect": {"type": "http", "url": endpoint["mcp_url"], "headers": by_input}}
        for printed in (text, stack.console_text):
            claude = shlex.split(next(line for line in printed.splitlines() if line.startswith("claude mcp add")))
            assert claude[-3:] == [endpoint["mcp_url"], "--header", "Authorization: Bearer $RECOLLECT_API_KEY"]


class TestRefusal:
    def test_a_second_start_on_the_same_data_names_the_running_one(self, stack: RunningLocal, tmp_path: Path) -> None:
        data = stack.folder / "data"
        console_text = refusal(tmp_path, "--port", "0", data=data)
        address = stack.endpoint()["mcp_url"].removesuffix("/mcp")
        assert f"Recollect already runs on {data} (process {stack.process.pid}, {address})" in console_text
        assert is_ready(stack.endpoint())
        assert (data / "local.json").exists()

    def test_a_taken_port_is_reported_before_anything_starts(self, stack: RunningLocal, tmp_path: Path) -> None:
        port = str(urlsplit(stack.endpoint()["mcp_url"]).port)
        console_text = refusal(tmp_path, "--port", port)
        assert f"Port {port} on 127.0.0.1 is in use" in console_text
        assert "--port" in console_text
        assert {path.name for path in (tmp_path / "data").iterdir()} == {"lock", ".recollect", ".gitignore"}

    def test_an_unknown_host_is_reported_with_its_option(self, tmp_path: Path) -> None:
        assert "--host" in refusal(tmp_path, "--port", "0", "--host", "192.0.2.1")

    @pytest.mark.parametrize("variable", ["RECOLLECT_DATABASE_POOL_SIZE", "RECOLLECT_CELLS"])
    def test_an_invalid_setting_is_named(self, tmp_path: Path, variable: str) -> None:
        assert variable in refusal(tmp_path, "--port", "0", environment={variable: "none"})

    def test_an_unusable_data_folder_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("a file")
        assert str(tmp_path / "data") in refusal(tmp_path, "--port", "0")

    def test_a_missing_database_is_reported(self, tmp_path: Path) -> None:
        absent = {"RECOLLECT_DATABASE_URL": "postgresql://postgres@127.0.0.1:1/recollect"}
        assert "Cannot reach the database" in refusal(tmp_path, "--port", "0", environment=absent)


class TestReadiness:
    """Readiness is that of the own gateway, whichever server answers at the address."""

    @pytest.fixture
    def gateway(self, tmp_path: Path) -> Iterator[CommandServer]:
        """A gateway process that runs and never listens."""
        waiting = [sys.executable, "-c", "import threading; threading.Event().wait()"]
        gateway = CommandServer("Gateway", waiting, log=tmp_path / "gateway.log", environment=ENVIRONMENT)
        gateway.start()
        yield gateway
        gateway.stop()

    def test_the_gateway_of_another_folder_is_reported(self, stack: RunningLocal, gateway: CommandServer) -> None:
        endpoint = replace(Endpoint(**stack.endpoint()), admin_key="rcl_of_another_folder")
        with Supervisor(print) as supervisor, pytest.raises(Unavailable, match="Another Recollect answers"):
            _wait_until_ready(gateway, endpoint, supervisor, threading.Event())

    def test_a_gateway_that_does_not_run_is_not_ready(self, stack: RunningLocal, gateway: CommandServer) -> None:
        endpoint = Endpoint(**stack.endpoint())
        assert _is_ready(gateway, endpoint)
        gateway.stop()
        assert not _is_ready(gateway, endpoint)


@pytest.mark.parametrize("name", ["Gateway", "Worker", "Valkey", "PostgreSQL"])
def test_a_killed_server_is_started_again(stack: RunningLocal, name: str) -> None:
    endpoint = stack.endpoint()
    victim = stack.children()[name]
    victim.kill()
    wait_until(lambda: is_gone(victim) and f"{name} was restarted" in stack.console_text)
    wait_until(lambda: is_ready(endpoint))
    assert f"{name} was killed by signal 9" in stack.console_text
    assert stack.children().keys() == {"Gateway", "Worker", "Valkey", "PostgreSQL"}
    remember_entity(endpoint, f"After {name}")
    assert f"After {name}" in entity_names(endpoint)


def test_servers_from_the_settings_are_used_instead(tmp_path: Path) -> None:
    postgres, valkey = LocalPostgres(tmp_path / "theirs", settings={"fsync": "off"}), LocalValkey(tmp_path / "theirs")
    try:
        postgres.start()
        valkey.start()
        real = {"RECOLLECT_DATABASE_URL": postgres.url(), "RECOLLECT_REDIS_URL": valkey.url}
        stack = start(tmp_path, environment=real)
        try:
            remember_entity(stack.endpoint(), "Elsewhere")
            assert entity_names(stack.endpoint()) == ["Elsewhere"]
            assert stack.children().keys() == {"Gateway", "Worker"}
            assert not (tmp_path / "data" / "postgres").exists()
        finally:
            assert stack.stop(terminate) == 0
        assert postgres.is_running()
        assert valkey.is_running()
    finally:
        valkey.stop()
        postgres.stop()
