"""The root of the `recollect` command."""

import importlib
import subprocess
import sys

import pytest
from cyclopts import App

from recollect_cli.main import COMMANDS, app


@pytest.mark.parametrize("command", COMMANDS)
def test_the_root_help_describes_each_command_as_its_own_help_does(command: str) -> None:
    target, shown, _ = COMMANDS[command]
    module, _, attribute = target.partition(":")
    loaded = getattr(importlib.import_module(f"recollect_cli.{module}"), attribute)
    told = loaded.help if isinstance(loaded, App) else loaded.__doc__
    assert told
    assert told.splitlines()[0] == shown.splitlines()[0]


def test_the_root_help_groups_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    app(["--help"], result_action="return_value")
    shown, places = capsys.readouterr().out, {}
    for name, (_, _, group) in COMMANDS.items():
        title = shown.index(group.name)
        places[name] = (title, shown.index(f" {name} ", title))
    titles = sorted({title for title, _ in places.values()})
    assert len(titles) == 4
    for name, (title, place) in places.items():
        assert [other for other in titles if title < other < place] == [], name


def test_help_loads_no_command() -> None:
    shown = "from recollect_cli.main import app; app(['--help'], result_action='return_value')"
    loaded = loaded_by(shown)
    assert "recollect_cli.main" in loaded
    assert not [name for name in loaded if name.startswith(("recollect_gateway", "recollect.postgres", "mcp", "numpy"))]


def test_database_commands_load_neither_mcp_nor_exporters() -> None:
    """Each of the two takes as long to load as everything that they need."""
    loaded = loaded_by("import recollect_cli.keys, recollect_cli.members")
    assert "recollect.postgres.database" in loaded
    assert not [name for name in loaded if name.startswith(("mcp", "opentelemetry.exporter", "opentelemetry.instr"))]


def test_only_commands_that_speak_mcp_load_it() -> None:
    """Loading it takes longer than all else, and callers of the operator API do not need it, in whichever process."""
    modules = {
        COMMANDS[command][0].partition(":")[0] for command in COMMANDS.keys() - {"gateway", "stdio", "reference"}
    }
    loaded = loaded_by("; ".join(f"import recollect_cli.{module}" for module in sorted(modules)))
    assert not [name for name in loaded if name.startswith("mcp")]


def test_operator_commands_load_neither_a_server_nor_a_database_driver() -> None:
    loaded = loaded_by("import recollect_cli.tenants, recollect_cli.plans")
    assert "recollect_cli.operator_api" in loaded
    kept_out = ("litestar", "recollect_http", "recollect_gateway", "recollect_operator", "asyncpg", "redis", "numpy")
    assert not [name for name in loaded if name.startswith(kept_out)]


def test_import_and_export_commands_do_not_load_the_graph() -> None:
    """The file formats need no search, no embedder and no server."""
    loaded = loaded_by("import recollect_cli.transfer")
    assert "recollect.transfer.formats.mem0" in loaded
    kept_out = ("numpy", "redis", "mcp", "recollect.retrieval", "recollect.memory", "recollect.postgres.database")
    assert not [name for name in loaded if name.startswith(kept_out)]


def loaded_by(code: str) -> list[str]:
    """The modules that another process has loaded after that code."""
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
