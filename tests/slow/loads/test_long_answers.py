"""Long transfers end when their credential ends."""

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx2
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.jobs.model import MAX_CHUNK
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.usefixtures("leaves_nothing")

LINES = b"\n".join(
    json.dumps(
        {
            "type": "entity",
            "name": f"{number}",
            "entityType": "t",
            "observations": [letter * 9_000 for letter in "abcd"],
        }
    ).encode()
    for number in range(100)
)
FILES = 4
"""So many files exceed what the systems between a gateway and its client buffer."""

End = Callable[[], Awaitable[None]]


@pytest.fixture
async def issued(issue: NewApiKey, caller: Caller) -> IssuedKey:
    return await issue(caller)


@pytest.fixture(params=["revoked", "suspended"])
def end(
    request: pytest.FixtureRequest, db: Database, operator: Operator, caller: Caller, tenant: Tenant, issued: IssuedKey
) -> End:
    """Ends the credential."""

    async def revoke() -> None:
        async with db.transaction(caller) as tx:
            await identity.revoke_key(tx, issued.key.id)

    async def suspend() -> None:
        await tenants.suspend_tenant(operator, tenant.slug)

    return revoke if request.param == "revoked" else suspend


@pytest.fixture
async def agent(gateway: RunningGateway, issued: IssuedKey) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a graph that takes long to send."""
    async with gateway.http(issued.secret) as http:
        for part in range(FILES):
            body = LINES.replace(b'"name": "', b'"name": "%d-' % part)
            answer = await http.post(
                "/v1/graphs/default/import", content=body, headers={"Content-Type": "application/x-ndjson"}
            )
            assert answer.status_code == 200, answer.text
        yield http


@contextmanager
def begun(gateway: RunningGateway, secret: str, path: str) -> Iterator[socket.socket]:
    """A client that has read only the beginning of an answer."""
    address = urlsplit(gateway.url)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(MAX_WAIT_SECONDS)
        client.connect((str(address.hostname), address.port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
        assert client.recv(1024).startswith(b"HTTP/1.1 200")
        yield client


def rest(client: socket.socket) -> bytes:
    """Everything that arrives until the other side closes."""
    got = bytearray()
    try:
        while part := client.recv(65536):
            got += part
    except ConnectionError:
        pass
    return bytes(got)


@pytest.mark.proves("security: long-answers")
async def test_an_export_is_cut_off_when_its_credential_ends(
    gateway: RunningGateway, agent: httpx2.AsyncClient, issued: IssuedKey, end: End
) -> None:
    whole = len((await agent.get("/v1/graphs/default/export")).content)
    with begun(gateway, issued.secret, "/v1/graphs/default/export") as client:
        await end()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024 * 1024)
        received = rest(client)
    assert len(received) < whole
    assert not received.endswith(b"0\r\n\r\n")


async def test_a_download_is_cut_off_when_its_credential_ends(
    gateway: RunningGateway, agent: httpx2.AsyncClient, issued: IssuedKey, end: End, context: WorkerContext
) -> None:
    job = (await agent.post("/v1/graphs/default/exports", json={"format": "jsonl"})).json()
    while (await agent.get(f"/v1/jobs/{job['id']}")).json()["finished_at"] is None:
        await job_loop.sweep(context)
    path = f"/v1/jobs/{job['id']}/output"
    whole = len((await agent.get(path)).content)
    with begun(gateway, issued.secret, path) as client:
        await end()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024 * 1024)
        assert len(rest(client)) < whole


@pytest.mark.proves("security: long-answers")
async def test_an_upload_is_refused_when_its_credential_ends(
    gateway: RunningGateway, issued: IssuedKey, end: End
) -> None:
    async with gateway.http(issued.secret, **{"Content-Type": "application/x-ndjson"}) as http:

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(MAX_CHUNK // len(LINES) + 2):
                yield LINES
            await end()
            for _ in range(MAX_CHUNK // len(LINES) + 2):
                yield LINES

        assert (await http.post("/v1/graphs/default/imports", content=parts())).status_code == 401
