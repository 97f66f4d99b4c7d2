"""The main use, end to end: `docs/try_it.py` against `recollect local`, before and after a restart."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.slow.stacks.test_local_stack import (
    ENVIRONMENT,
    RunningLocal,
    entity_names,
    kill,
    press_ctrl_c,
    remember_entity,
    start,
    terminate,
    wait_until_gone,
)
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[3] / "docs"


def try_it(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a newcomer does."""
    return run_script("try_it.py", *options, **environment)


def run_script(name: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DOCS / name), *options],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT_SECONDS,
        check=False,
    )


ENDS: list[tuple[Callable[[int], None], int]] = [(terminate, 0), (press_ctrl_c, 0)]
"""How a stack may end, and its exit code."""

if sys.platform == "linux":  # elsewhere the next start stops what SIGKILL left
    ENDS.append((kill, -signal.SIGKILL))


@pytest.mark.proves("memory-server: durable")
def test_memories_are_found_again_after_a_restart(tmp_path: Path) -> None:
    """After every end of the stack, which stops all servers and keeps the data and the keys."""
    data = {"RECOLLECT_DATA_DIR": str(tmp_path / "data")}
    keys = set()
    for number, (end, exit_code) in enumerate([*ENDS, (terminate, 0)]):
        stack = start(tmp_path)
        try:
            endpoint = stack.endpoint()
            keys.add((endpoint["api_key"], endpoint["admin_key"]))
            assert starts_in(endpoint) == [f"Start {earlier}" for earlier in range(number)]
            if number == 0:
                remember_for_another_session(stack, tmp_path)
            else:
                again = try_it("--again", **data)
                assert again.returncode == 0, again.stdout + again.stderr
            remember_entity(endpoint, f"Start {number}")
            children = stack.children()
            assert len(children) == 4
        finally:
            code = stack.stop(end)
        assert code == exit_code, stack.console_text
        wait_until_gone(children.values())
        published = [stack.ready_file.exists(), (tmp_path / "data" / "local.json").exists()]
        assert published == ([True, True] if end is kill else [False, False])
    assert len(keys) == 1
    assert "make run" in try_it(**data).stderr


def starts_in(endpoint: Mapping[str, str]) -> list[str]:
    return [name for name in entity_names(endpoint) if name.startswith("Start ")]


def remember_for_another_session(stack: RunningLocal, folder: Path) -> None:
    """Run the script as a newcomer does, and draw what two sessions see of it."""
    data = {"RECOLLECT_DATA_DIR": str(folder / "data")}
    too_early = try_it("--again", **data)
    assert too_early.returncode == 1, too_early.stdout
    assert "NOT FOUND" in too_early.stderr
    first = try_it(**data)
    assert first.returncode == 0, first.stdout + first.stderr
    endpoint = stack.endpoint()
    named = {"RECOLLECT_MCP_URL": endpoint["mcp_url"], "RECOLLECT_API_KEY": endpoint["api_key"]}
    second = try_it(**named)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "known: Bees make honey" in second.stdout, "remembered once"
    drawing = folder / "two-sessions.svg"
    drawn = run_script("two_sessions.py", str(drawing), **named)
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    assert drawing.read_text() == (DOCS / "assets" / "two-sessions.svg").read_text(), "draw it again"


def test_a_missing_stack_is_reported(tmp_path: Path) -> None:
    failed = try_it(
        RECOLLECT_MCP_URL="http://127.0.0.1:9/mcp", RECOLLECT_API_KEY="rcl_agent_x", HOME=os.fspath(tmp_path)
    )
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
