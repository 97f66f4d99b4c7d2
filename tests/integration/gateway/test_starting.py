"""A gateway says at its start what is wrong with it: in one line, and with the server that does not answer."""

import asyncio
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect_gateway.__main__ import serve
from recollect_http.access_log import AccessLog
from tests.support.forks import fork_logging
from tests.support.gateway import eventually, serving
from tests.support.workers import environment

NOWHERE = "postgresql://nobody:7hunder@127.0.0.1:9/nowhere"


async def test_a_gateway_without_a_database_names_its_server(settings: Settings) -> None:
    with capture_logs() as logs, serving(settings.model_copy(update={"database_url": NOWHERE})):

        async def is_told() -> bool:
            return any(line["event"] == "waiting for the database" for line in logs)

        await eventually(is_told)
    told = [line for line in logs if line["event"] in ("waiting for the database", "cannot connect to PostgreSQL")]
    assert {line["server"] for line in told} == {"127.0.0.1:9"}
    assert [line["log_level"] for line in told if line["event"] == "waiting for the database"] == ["warning"]
    assert "7hunder" not in str(logs)


async def test_a_gateway_whose_database_answers_says_nothing(settings: Settings) -> None:
    with capture_logs() as logs, serving(settings) as gateway:
        async with gateway.http() as http:
            assert (await http.get("/health/ready")).status_code == 200
    assert "waiting for the database" not in [line["event"] for line in logs]


def test_what_keeps_it_from_starting_is_one_error(settings: Settings) -> None:
    """Any part may refuse, as Redis's client does here, which is opened with the application."""
    wrong = settings.model_copy(update={"redis_url": "http://127.0.0.1:9", "port": 0})
    with pytest.raises(InvalidInput, match=r"^RECOLLECT_REDIS_URL: It must be"):
        serve(wrong)


@pytest.mark.parametrize("module", ["recollect_gateway", "recollect_workers"])
async def test_a_process_ends_with_one_line_for_a_wrong_setting(
    settings: Settings, tmp_path: Path, module: str
) -> None:
    variables = {**environment(settings), "RECOLLECT_EMBEDDER": "bert"}
    log = tmp_path / "log"
    log.touch()
    process = fork_logging(module, variables, log)
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == 1
    [line] = log.read_text().splitlines()
    assert "RECOLLECT_EMBEDDER: There is no embedder 'bert': set RECOLLECT_EMBEDDER to minilm, multi" in line


def test_the_local_stack_ends_with_that_line_before_it_starts_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recollect_cli.main", "local", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    variables = {"RECOLLECT_EMBEDDER": "bert", "RECOLLECT_DATABSE_URL": "x", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("recollect local: RECOLLECT_EMBEDDER: There is no embedder 'bert'")
    assert not (tmp_path / "data").exists()


async def test_the_access_log_has_numbers_of_statuses() -> None:
    """Applications may send members of `HTTPStatus`, as the SDK of MCP does for notifications."""

    async def accept(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": HTTPStatus.ACCEPTED, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def nothing(*_: Any) -> None:
        return None

    with capture_logs() as logs:
        await AccessLog(accept)({"type": "http", "path": "/mcp", "method": "POST"}, nothing, nothing)
    [line] = [line for line in logs if line["event"] == "request"]
    assert repr(line["status"]) == "202"
