"""That every promise of the references is kept by a test, and that the table which says so is true."""

from typing import Any

import pytest
from mcp_types import METHOD_NOT_FOUND

from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE
from tests.contract.coverage import ROOT, Promise, coverage_page, features, missing, source_of, tools
from tests.support.gateway import RunningGateway

PROMISES = [*tools(), *features()]
EVERY_PROMISE = pytest.mark.parametrize("promise", PROMISES, ids=lambda p: f"{p.section}: {p.name}")


@EVERY_PROMISE
def test_a_promise_is_proved_by_tests_that_are_there_and_run(promise: Promise) -> None:
    assert promise.tests
    missing = [test for test in promise.tests if source_of(test) is None]
    assert missing == []


@pytest.mark.parametrize("promise", tools(), ids=lambda p: f"{p.section}: {p.name}")
def test_a_tool_s_tests_are_about_it(promise: Promise) -> None:
    """Each names it itself: that another test of its file does would prove nothing."""
    elsewhere = [test for test in promise.tests if promise.name not in (source_of(test) or "")]
    assert elsewhere == []


def test_the_table_holds_every_tool_of_the_catalogue_and_no_other() -> None:
    here = {(toolset, tool.name) for tool in CATALOGUE for toolset in tool.toolsets}
    assert {(promise.section, promise.name) for promise in tools()} == here


def test_the_page_is_the_table() -> None:
    """Make it anew with: .venv/bin/python -m tests.contract.coverage > docs/coverage.md"""
    assert (ROOT / "docs" / "coverage.md").read_text() == coverage_page()


REFERENCES = (
    *("official-memory-server-persistence.md", "mcp-memory-crate.md", "memory-mcp-data-flow.md"),
    *("graph-memory-api-contract.md", "memgraph-package.md"),
)


@pytest.mark.parametrize("reference", REFERENCES)
def test_each_reference_tells_what_is_kept_and_what_is_missing(reference: str) -> None:
    assert [promise for promise in features() if reference in promise.section]
    assert [each for each in missing() if reference in each.section]


def test_what_is_missing_says_why_and_is_promised_nowhere_as_kept() -> None:
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
async def test_what_is_said_to_be_missing_is(
    gateway: RunningGateway, key: str, method: str, params: dict[str, Any], promise: str
) -> None:
    """Once it is there, its row goes up to what is kept."""
    assert any(each.name.startswith(promise) for each in missing())
    async with gateway.http(key) as http:
        answer = await gateway.post(http, method, params, path="/mcp/x/all")
        assert answer["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        ("tests/contract/test_coverage.py::test_the_page_is_the_table", True),
        ("tests/contract/test_memory_server.py::TestReading::test_another_graph_is_another_memory", True),
        ("tests/contract/test_memory_server.py::test_another_graph_is_another_memory", False),
        ("tests/contract/test_coverage.py::EVERY_PROMISE", False),
        ("tests/contract/test_nowhere.py::test_nothing", False),
        ("tests/verify/test_memory_server.py::test_both_answer_alike", False),
    ],
)
def test_what_is_not_run_proves_nothing(test: str, runs: bool) -> None:
    assert (source_of(test) is not None) is runs
