"""The official suite's scenarios of authorization servers against a gateway process: a client of it asks, a person in
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
async def test_every_scenario_holds_or_is_listed_with_its_reason(
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
        asked = ["--url", deployed.gateway.url, "--client-id", client.id, "--port", str(port)]
        asked += ["--resource", deployed.gateway.url + path.format(tenant=tenant.slug), "--spec-version", revision]
        visitor = Keyboarder(page, person.email, callback)
        checks = await authorization_checks(asked, visitor, tmp_path)
    found = findings(checks)
    unexpected = {finding: said for finding, said in found.items() if finding not in AUTHORIZATION}
    assert not unexpected, json.dumps(unexpected, indent=2)
    assert AUTHORIZATION.keys() <= found.keys(), "listed in conformance_findings.py, but holds: remove it there"
    assert set(checks) == AUTHORIZATION_SCENARIOS
    assert visitor.visits == 1
    assert deployed.faults() == []


async def authorization_checks(asked: list[str], visitor: Keyboarder, folder: Path) -> Checks:
    """Run the suite's scenarios of authorization servers; the visitor opens the address that it says to open."""
    async with running(suite("authorization", *asked, "--output-dir", str(folder))) as process:
        assert process.stdout
        said: list[str] = []
        async for line in process.stdout:
            said.append(line.decode())
            if "/oauth/authorize?" in said[-1]:
                await visitor.visit(said[-1].strip())
        await process.wait()
    checks = read_checks(folder, "authorization-server")
    assert checks, "".join(said)
    return checks


@asynccontextmanager
async def running(command: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that is no more when the context ends, nor takes longer than SUITE_SECONDS."""
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
