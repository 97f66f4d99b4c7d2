"""A test proves each promise of the references, and the table of promises is true."""

from typing import Any

import pytest
from mcp_types import METHOD_NOT_FOUND

from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE
from tests.contract.coverage import ROOT, Promise, coverage_page, features, missing, source_of, tools
from tests.support.gateway import RunningGateway

PROMISES = [*tools(), *features()]
EVERY_PROMISE = pytest.mark.parametrize("promise", PROMISES, ids=lambda p: f"{p.section}: {p.name}")


@EVERY_PROMISE
def test_each_promise_is_proved_by_existing_tests(promise: Promise) -> None:
    assert promise.tests
    missing = [test for test in promise.tests if source_of(test) is None]
    assert missing == []


@pytest.mark.parametrize("promise", tools(), ids=lambda p: f"{p.section}: {p.name}")
def test_the_tests_of_a_tool_call_it(promise: Promise) -> None:
    """Each test names the tool itself; another test of its file that does so would prove nothing."""
    elsewhere = [test for test in promise.tests if promise.name not in (source_of(test) or "")]
    assert elsewhere == []


def test_the_table_has_exactly_the_tools_of_the_catalogue() -> None:
    here = {(toolset, tool.name) for tool in CATALOGUE for toolset in tool.toolsets}
    assert {(promise.section, promise.name) for promise in tools()} == here


def test_the_page_is_made_from_the_table() -> None:
    """Regenerate it with: .venv/bin/python -m tests.contract.coverage > docs/coverage.md"""
    assert (ROOT / "docs" / "coverage.md").read_text() == coverage_page()


REFERENCES = (
    *("official-memory-server-persistence.md", "mcp-memory-crate.md", "memory-mcp-data-flow.md"),
    *("graph-memory-api-contract.md", "memgraph-package.md"),
)


@pytest.mark.parametrize("reference", REFERENCES)
def test_each_reference_has_kept_and_missing_promises(reference: str) -> None:
    assert [promise for promise in features() if reference in promise.section]
    assert [each for each in missing() if reference in each.section]


def test_each_missing_promise_has_a_reason_and_is_not_listed_as_kept() -> None:
    kept = {(promise.section, promise.name) for promise in features()}
    assert all(each.instead.endswith(".") for each in missing())
    assert kept.isdisjoint((each.section, each.name) for each in missing())
    assert {each.section for each in missing()} <= {promise.section for promise in features()}


@pytest.mark.parametrize(
    ("method", "params", "promise"),
    [
        ("resources/subscribe", {"uri": "memory://knowledge-graph"}, "Subscriptions"),
    ],
)
async def test_a_method_that_is_listed_as_missing_is_not_served(
    gateway: RunningGateway, key: str, method: str, params: dict[str, Any], promise: str
) -> None:
    """Once it is served, its row moves to the kept promises."""
    assert any(each.name.startswith(promise) for each in missing())
    async with gateway.http(key) as http:
        answer = await gateway.post(http, method, params, path="/mcp/x/all")
        assert answer["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        ("tests/contract/test_coverage.py::test_the_page_is_made_from_the_table", True),
        ("tests/contract/test_memory_server.py::TestReading::test_graphs_are_separate_memories", True),
        ("tests/contract/test_memory_server.py::test_graphs_are_separate_memories", False),
        ("tests/contract/test_coverage.py::EVERY_PROMISE", False),
        ("tests/contract/test_nowhere.py::test_nothing", False),
        ("tests/verify/test_memory_server.py::test_both_servers_answer_alike", False),
    ],
)
def test_a_test_that_is_not_run_proves_nothing(test: str, runs: bool) -> None:
    assert (source_of(test) is not None) is runs
