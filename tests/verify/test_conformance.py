"""The official MCP conformance suite against a gateway process: all server scenarios of both wire revisions."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from recollect.accounts.tenants.model import Tenant
from tests.support.gateway import MODES, RunningGateway
from tests.verify.conformance import Checks, findings, read_checks, suite
from tests.verify.conformance_findings import EXPECTED, SCENARIOS, TASK_SCENARIOS, TASKS
from tests.verify.conformance_page import PAGE, conformance_page
from tests.verify.processes import DeployedGateway, signing_in

DEFAULT = "/mcp"
TENANT = "/t/{tenant}/mcp/x/agent,memory,examples"
"""Not all toolsets: at 2026-07-28 a list of that size, unread on a closing connection, crashes the suite itself
(an assertion in Node's HTTP client, `server-sse-multiple-streams`)."""
SUITE_SECONDS = 100


async def test_the_page_lists_all_results_with_reasons_for_failures(
    with_examples: DeployedGateway, key: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """If the page differs, `make conformance` rewrites it and fails: read the difference, and commit it."""
    async with signing_in(with_examples.gateway, key) as gateway:
        results = {revision: await conformance(gateway.url + DEFAULT, revision, tmp_path) for revision in MODES}
        results[TASKS] = await conformance_of_tasks(gateway.url + DEFAULT, tmp_path)
    for revision, checks in results.items():
        require_expected(revision, checks)
    assert with_examples.faults() == []
    page = conformance_page(results)
    differs = PAGE.read_text() != page if PAGE.exists() else True
    if differs and pytestconfig.getoption("write_conformance"):
        PAGE.write_text(page)
    assert not differs, "docs/conformance.md is out of date: make conformance writes it"


@pytest.mark.parametrize("revision", MODES)
async def test_the_suite_has_the_same_findings_at_the_address_of_a_tenant(
    revision: str, with_examples: DeployedGateway, tenant: Tenant, key: str, tmp_path: Path
) -> None:
    async with signing_in(with_examples.gateway, key) as gateway:
        checks = await conformance(gateway.url + TENANT.format(tenant=tenant.slug), revision, tmp_path)
    require_expected(revision, checks)
    assert with_examples.faults() == []


def require_expected(revision: str, checks: Checks) -> None:
    """Fail unless the suite ran all scenarios, and has exactly the listed findings."""
    found, expected = findings(checks), EXPECTED[revision]
    unexpected = {finding: said for finding, said in found.items() if finding not in expected}
    assert not unexpected, json.dumps(unexpected, indent=2)
    holds_now = sorted(expected.keys() - found.keys())
    assert not holds_now, "listed in conformance_findings.py, but holds: remove it there"
    assert len(checks) == SCENARIOS[revision], sorted(checks)


async def conformance(url: str, revision: str, parent: Path) -> Checks:
    """Run the suite's server scenarios of a revision; returns their checks."""
    return await _run(parent, revision, "--url", url, "--suite", "all", "--spec-version", revision)


async def conformance_of_tasks(url: str, parent: Path) -> Checks:
    """Run the scenarios of the extension, each by its name; returns their checks."""
    checks: dict[str, list[dict[str, Any]]] = {}
    for scenario in TASK_SCENARIOS:
        checks |= await _run(parent, scenario, "--url", url, "--scenario", scenario)
    return checks


async def _run(parent: Path, name: str, *arguments: str) -> Checks:
    folder = parent / name
    folder.mkdir()
    process = await asyncio.create_subprocess_exec(
        *suite("server", *arguments, "--output-dir", str(folder)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SUITE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    checks = read_checks(folder, "server")
    assert checks, output.decode(errors="replace")
    return checks


class TestFindings:
    """Tests of `findings`, which could hide failures."""

    @pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "anything new"])
    def test_every_check_that_did_not_succeed_is_a_finding(self, status: str) -> None:
        checks = [{"id": "a", "status": "SUCCESS"}, {"id": "b", "status": status, "errorMessage": "why"}]
        assert findings({"ping": checks}) == {"ping: b": f"{status}: why"}

    def test_a_scenario_without_checks_is_a_finding(self) -> None:
        assert findings({"ping": [{"id": "a", "status": "INFO"}], "other": []}) == {
            "ping: nothing was checked": "",
            "other: nothing was checked": "",
        }


async def test_the_forwarder_adds_the_key_without_which_a_client_is_refused(
    deployed: DeployedGateway, key: str
) -> None:
    """Otherwise the suite would not test the deployed gateway."""
    async with signing_in(deployed.gateway, key) as signed_in:
        assert await _status(deployed.gateway) == 401
        assert await _status(signed_in) == 200


async def _status(gateway: RunningGateway) -> int:
    async with gateway.http() as http:
        return (await http.get("/v1/graphs")).status_code
