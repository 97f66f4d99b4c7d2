"""A command of a test that does not end fails the test, and not the whole run."""

import socket
from pathlib import Path

import pytest

from tests.support.commands import Shell


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        shell = Shell(tmp_path, {"RECOLLECT_URL": url, "RECOLLECT_API_KEY": "rcl_agent_x"})
        command = shell.start("jobs", "list")
        with pytest.raises(AssertionError, match="does not end"):
            command.communicate(seconds=1)
        assert not command.is_running()
