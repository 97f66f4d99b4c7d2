"""The official scenarios for authorization servers against a gateway process: the suite is the client, and a person in
Chromium signs in and consents."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from recollect.accounts.people.model import Person
from recollect.accounts.tenants.model import Tenant
from recollect_local.address import claimed_port
from tests.support.gateway import LEGACY, MODERN
from tests.support.oauth import HandClient
from tests.verify.browser import Chromium, Keyboarder
from tests.verify.conformance import Checks, findings, read_checks, suite
from tests.verify.conformance_findings import AUTHORIZATION, AUTHORIZATION_SCENARIOS
from tests.verify.processes import DeployedGateway

SUITE_SECONDS = 200


@pytest.mark.parametrize(("revision", "path"), [(LEGACY, "/mcp"), (MODERN, "/t/{tenant}/mcp")])
async def test_every_scenario_succeeds_or_is_listed_with_a_reason(
    deployed: DeployedGateway,
    tenant: Tenant,
    person: Person,
    page: Chromium,
    tmp_path: Path,
    revision: str,
    path: str,
) -> None:
    with claimed_port("127.0.0.1", 0) as port:
        callback = f"http://127.0.0.1:{port}/callback"
        async with deployed.gateway.http() as http:
            client = await HandClient.register(deployed.gateway, http, redirect_uris=[callback])
        arguments = ["--url", deployed.gateway.url, "--client-id", client.id, "--port", str(port)]
        arguments += ["--resource", deployed.gateway.url + path.format(tenant=tenant.slug), "--spec-version", revision]
        visitor = Keyboarder(page, person.email, callback)
        checks = await authorization_checks(arguments, visitor, tmp_path)
    found = findings(checks)
    unexpected = {finding: said for finding, said in found.items() if finding not in AUTHORIZATION}
    assert not unexpected, json.dumps(unexpected, indent=2)
    assert AUTHORIZATION.keys() <= found.keys(), "listed in conformance_findings.py, but holds: remove it there"
    assert set(checks) == AUTHORIZATION_SCENARIOS
    assert visitor.visits == 1
    assert deployed.faults() == []


async def authorization_checks(arguments: list[str], visitor: Keyboarder, folder: Path) -> Checks:
    """Run the suite's scenarios for authorization servers; the visitor opens the address that the suite prints."""
    async with running(suite("authorization", *arguments, "--output-dir", str(folder))) as process:
        assert process.stdout
        output: list[str] = []
        async for line in process.stdout:
            output.append(line.decode())
            if "/oauth/authorize?" in output[-1]:
                await visitor.visit(output[-1].strip())
        await process.wait()
    checks = read_checks(folder, "authorization-server")
    assert checks, "".join(output)
    return checks


@asynccontextmanager
async def running(command: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that ends with the context, and after SUITE_SECONDS at the latest."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(SUITE_SECONDS):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
