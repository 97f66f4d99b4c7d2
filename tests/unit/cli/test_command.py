"""The root of the `recollect` command."""

import inspect
import subprocess
import sys

import pytest

from recollect_cli.main import COMMANDS, app


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_told_at_the_root_as_it_tells_itself(command: str) -> None:
    loaded = app[command]
    told = loaded.help or inspect.getdoc(loaded.default_command)
    assert told
    assert " ".join(told.split()).startswith(COMMANDS[command][1].removesuffix("."))


def test_only_the_command_that_is_used_is_loaded() -> None:
    shown = "from recollect_cli.main import app; app(['--help'], result_action='return_value')"
    code = f"{shown}; import sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "recollect_cli.main" in loaded
    assert not [name for name in loaded if name.startswith(("recollect_gateway", "recollect.platform", "mcp", "numpy"))]
