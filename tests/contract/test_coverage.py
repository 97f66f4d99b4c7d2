"""A test proves each promise of the references, and the table of promises is true."""

import pytest
from mcp_types import METHOD_NOT_FOUND

from recollect_cli.reference.glossary import TOOLSETS
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.contract.coverage import coverage_page, features, missing, tools
from tests.contract.security import guards
from tests.support.gateway import RunningGateway
from tests.support.promises import ROOT, all_marks, proofs_of

REFERENCES = (
    *("official-memory-server-persistence.md", "mcp-memory-crate.md", "memory-mcp-data-flow.md"),
    *("graph-memory-api-contract.md", "memgraph-package.md"),
)


def every_id() -> list[str]:
    return [*(promise.id for promise in (*tools(), *features())), *(guard.id for guard in guards())]


def test_each_promise_is_proved_by_a_test(subtests: pytest.Subtests) -> None:
    for promise in (*tools(), *features()):
        with subtests.test(promise.id):
            assert proofs_of(promise.id)


def test_the_tests_of_a_tool_call_it(subtests: pytest.Subtests) -> None:
    """Each test names the tool itself; another test of its file that does so would prove nothing."""
    for tool in tools():
        with subtests.test(tool.id):
            assert [proof.name for proof in proofs_of(tool.id) if tool.name not in proof.source] == []


def test_each_mark_stands_on_a_test_that_runs() -> None:
    """Not on a class, a helper, a test of `make verify`, or one that is set aside; and its promises are literals."""
    assert all_marks().void == ()


def test_each_mark_names_a_promise() -> None:
    """A tool, a line of coverage.toml, or a line of docs/security.md."""
    known = set(every_id())
    named = {(proof.path, proof.name, promise) for proof in all_marks().proofs for promise in proof.promises}
    assert {mark for mark in named if mark[2] not in known} == set()


def test_each_promise_has_its_own_id() -> None:
    assert len(set(every_id())) == len(every_id())


def test_every_tool_of_the_catalogue_is_promised() -> None:
    here = {(toolset, tool.name) for tool in CATALOGUE for toolset in tool.toolsets}
    assert {(promise.section, promise.name) for promise in tools()} == here
    assert {toolset for toolset, _ in here} == set(TOOLSETS)


def test_the_page_is_up_to_date() -> None:
    """Regenerate it with: make pages"""
    assert (ROOT / "docs" / "coverage.md").read_text() == coverage_page()


def test_each_reference_has_kept_and_missing_promises(subtests: pytest.Subtests) -> None:
    for reference in REFERENCES:
        with subtests.test(reference):
            assert [promise for promise in features() if reference in promise.section]
            assert [each for each in missing() if reference in each.section]


def test_each_missing_promise_has_a_reason_and_is_not_listed_as_kept() -> None:
    kept = {(promise.section, promise.name) for promise in features()}
    assert all(each.instead.endswith(".") for each in missing())
    assert kept.isdisjoint((each.section, each.name) for each in missing())
    assert {each.section for each in missing()} <= {promise.section for promise in features()}


async def test_a_method_that_is_listed_as_missing_is_not_served(gateway: RunningGateway, key: str) -> None:
    """Once it is served, its row moves to the kept promises."""
    assert any(each.name.startswith("Subscriptions by resources/subscribe") for each in missing())
    async with gateway.http(key) as http:
        params = {"uri": "memory://knowledge-graph"}
        answer = await gateway.post(http, "resources/subscribe", params, path="/mcp/x/all")
        assert answer["error"]["code"] == METHOD_NOT_FOUND
