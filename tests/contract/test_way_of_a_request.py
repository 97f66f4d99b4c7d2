"""docs/architecture.md lists the modules between a request and its SQL: they are those that a gateway really passes."""

import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from recollect.postgres.sql import Query
from recollect.postgres.transactions import Session
from tests.support.gateway import RunningGateway, rpc_headers

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
SECTION = PAGE.read_text().partition("\n## The way of a request\n")[2].partition("\n## ")[0]
MAX_STOPS = 12
STATEMENTS = {"remember": "observations.insert_observations", "recall": "recall.find_candidates"}
"""Of each call, the statement at which its way ends."""


def _documented(tool: str) -> list[str]:
    """The modules of the stops that the page lists."""
    listed = SECTION.partition(f"\n### `{tool}`\n")[2].partition("\n### ")[0]
    stops = re.findall(r"^\d+\. `(recollect[\w.]+)`", listed, re.MULTILINE)
    return [_module_of(pkgutil.resolve_name(stop)) for stop in stops]


def _module_of(named: Any) -> str:
    module = inspect.getmodule(named)
    assert module is not None
    return module.__name__


def _frames() -> Iterator[FrameType]:
    """The frames of the calls that are under way, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The modules that a call has passed when it runs a statement, by the statement's name."""
    passed: dict[str, list[str]] = {}
    original = Session.fetch

    async def fetch(session: Session, query: Query, **parameters: Any) -> Any:
        modules = [frame.f_globals.get("__name__", "") for frame in _frames()]
        ours = [module for module in reversed(modules) if module.startswith("recollect")]
        passed.setdefault(query.text.split()[1], list(dict.fromkeys(ours)))
        return await original(session, query, **parameters)

    monkeypatch.setattr(Session, "fetch", fetch)
    return passed


async def test_the_page_lists_the_stops_of_remember_and_recall(
    gateway: RunningGateway, key: str, passed: dict[str, list[str]], subtests: pytest.Subtests
) -> None:
    calls = {"remember": {"items": [{"text": "Ada likes tea", "about": ["Ada"]}]}, "recall": {"query": "likes tea"}}
    async with gateway.http(key, **rpc_headers()) as http:
        for tool, arguments in calls.items():
            with subtests.test(tool):
                answer = await gateway.post(http, "tools/call", {"name": tool, "arguments": arguments}, path="/mcp")
                assert answer["result"]["isError"] is False
                assert passed[STATEMENTS[tool]] == _documented(tool)
                assert len(_documented(tool)) <= MAX_STOPS


def test_every_name_in_the_section_exists(subtests: pytest.Subtests) -> None:
    names = set(re.findall(r"`(recollect_?\w*\.[\w.]+)`", SECTION))
    assert len(names) > MAX_STOPS
    for name in sorted(names):
        with subtests.test(name):
            pkgutil.resolve_name(name)
