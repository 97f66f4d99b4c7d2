"""The main use, end to end: `docs/try_it.py` against `recollect local`, before and after a restart."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slow.stacks.test_local_stack import ENVIRONMENT, start, terminate
from tests.support.timeouts import MAX_WAIT_SECONDS

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


@pytest.mark.proves("memory-server: durable")
def test_memories_are_found_again_after_a_restart(tmp_path: Path) -> None:
    stack = start(tmp_path)
    try:
        data = {"RECOLLECT_DATA_DIR": str(tmp_path / "data")}
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
        drawing = tmp_path / "two-sessions.svg"
        drawn = run_script("two_sessions.py", str(drawing), **named)
        assert drawn.returncode == 0, drawn.stdout + drawn.stderr
        assert drawing.read_text() == (DOCS / "assets" / "two-sessions.svg").read_text(), "draw it again"
    finally:
        assert stack.stop(terminate) == 0
    assert "make run" in try_it(**data).stderr
    stack = start(tmp_path)
    try:
        again = try_it("--again", **data)
        assert again.returncode == 0, again.stdout + again.stderr
    finally:
        assert stack.stop(terminate) == 0


def test_a_missing_stack_is_reported(tmp_path: Path) -> None:
    failed = try_it(
        RECOLLECT_MCP_URL="http://127.0.0.1:9/mcp", RECOLLECT_API_KEY="rcl_agent_x", HOME=os.fspath(tmp_path)
    )
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
