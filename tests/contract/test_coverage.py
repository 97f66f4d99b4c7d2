"""That every promise of the references is kept by a test, and that the table which says so is true."""

import pytest

from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE
from tests.contract.coverage import ROOT, Promise, coverage_page, features, source_of, tools

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
