"""The root of the `recollect` command."""

import importlib
import subprocess
import sys

import pytest
from cyclopts import App

from recollect_cli.main import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_told_at_the_root_as_it_tells_itself(command: str) -> None:
    target, shown = COMMANDS[command]
    module, _, attribute = target.partition(":")
    loaded = getattr(importlib.import_module(f"recollect_cli.{module}"), attribute)
    told = loaded.help if isinstance(loaded, App) else loaded.__doc__
    assert told
    assert told.splitlines()[0] == shown.splitlines()[0]


def test_only_the_command_that_is_used_is_loaded() -> None:
    shown = "from recollect_cli.main import app; app(['--help'], result_action='return_value')"
    loaded = loaded_by(shown)
    assert "recollect_cli.main" in loaded
    assert not [name for name in loaded if name.startswith(("recollect_gateway", "recollect.platform", "mcp", "numpy"))]


def test_commands_on_tenants_load_no_exporters_and_no_tools() -> None:
    """Each takes as long to load as all that they do need."""
    loaded = loaded_by("import recollect_cli.keys, recollect_cli.members")
    assert "recollect.platform.db" in loaded
    assert not [name for name in loaded if name.startswith(("mcp", "opentelemetry.exporter", "opentelemetry.instr"))]


def test_no_command_loads_mcp_but_those_that_speak_it() -> None:
    """That takes longer than all else, and who asks the operator API, in its process or another, needs none of it."""
    modules = {
        COMMANDS[command][0].partition(":")[0] for command in COMMANDS.keys() - {"gateway", "stdio", "reference"}
    }
    loaded = loaded_by("; ".join(f"import recollect_cli.{module}" for module in sorted(modules)))
    assert not [name for name in loaded if name.startswith("mcp")]


def test_what_asks_an_operator_api_elsewhere_loads_no_server_and_no_database() -> None:
    loaded = loaded_by("import recollect_cli.tenants, recollect_cli.plans")
    assert "recollect_cli.operator_api" in loaded
    kept_out = ("litestar", "recollect_gateway", "recollect_operator", "asyncpg", "redis", "numpy")
    assert not [name for name in loaded if name.startswith(kept_out)]


def test_what_carries_files_to_a_gateway_loads_nothing_that_a_graph_is_kept_with() -> None:
    """Formats name what graphs are made of, and need no search, no embedder and no server for it."""
    loaded = loaded_by("import recollect_cli.transfer")
    assert "recollect.transfer.formats.mem0" in loaded
    kept_out = ("numpy", "redis", "mcp", "recollect.retrieval", "recollect.memory", "recollect.platform.db")
    assert not [name for name in loaded if name.startswith(kept_out)]


def loaded_by(code: str) -> list[str]:
    """The modules that another process has loaded after that code."""
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
