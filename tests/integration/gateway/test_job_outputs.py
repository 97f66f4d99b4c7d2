"""Outputs of jobs: exports by callers who may only read, downloading, and deleting to make room."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.jobs import employed

EXPORTS = "/v1/graphs/default/exports"


@pytest.fixture
async def worker(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with employed(settings, db) as context:
        yield context


@pytest.fixture
async def reader(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    issued = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
    async with gateway.http(issued.secret) as http:
        yield http


@pytest.fixture
async def writer(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        await done(http, "POST", "/v1/graphs/default/memories", items=[{"text": "tea is hot"}])
        yield http


async def started(http: httpx2.AsyncClient, format: str = "json") -> dict[str, Any]:
    response = await http.post(EXPORTS, json={"format": format})
    assert response.status_code == 202, response.text
    job: dict[str, Any] = response.json()
    return job


async def stored(owner: asyncpg.Connection, caller: Caller) -> int:
    """The number of bytes of output that the tenant's jobs store."""
    query = "SELECT coalesce(sum(octet_length(chunk)), 0) FROM job_outputs WHERE tenant_id = $1"
    return int(await owner.fetchval(query, caller.tenant_id))


async def test_a_reader_can_export_by_a_job_and_delete_the_output(
    writer: httpx2.AsyncClient,
    reader: httpx2.AsyncClient,
    worker: WorkerContext,
    owner: asyncpg.Connection,
    caller: Caller,
) -> None:
    path = f"/v1/jobs/{(await started(reader))['id']}"
    problem(await reader.delete(f"{path}/output"), 409, "job_not_finished")
    await job_loop.sweep(worker)
    assert "tea is hot" in (await reader.get(f"{path}/output")).text
    assert await stored(owner, caller) > 0
    deleted = (await reader.delete(f"{path}/output")).json()
    assert (deleted["status"], deleted["output_bytes"], deleted["output_deleted"]) == ("succeeded", 0, True)
    assert await stored(owner, caller) == 0
    problem(await reader.get(f"{path}/output"), 404, "job_has_no_output")
    assert (await reader.delete(f"{path}/output")).json() == deleted == await done(reader, "GET", path)
    assert writer is not reader


async def test_a_deleted_empty_output_is_gone_too(reader: httpx2.AsyncClient, worker: WorkerContext) -> None:
    path = f"/v1/jobs/{(await started(reader, 'jsonl'))['id']}/output"
    await job_loop.sweep(worker)
    assert (await reader.get(path)).content == b""
    assert (await reader.delete(path)).status_code == 200
    problem(await reader.get(path), 404, "job_has_no_output")


async def test_number_of_exports_of_a_reader_is_limited(
    writer: httpx2.AsyncClient, reader: httpx2.AsyncClient, worker: WorkerContext
) -> None:
    first = await started(reader, "json")
    await started(reader, "csv")
    for _ in range(2):
        problem(await reader.post(EXPORTS, json={"format": "dot"}), 409, "too_many_jobs")
        await job_loop.sweep(worker)
    assert (await reader.delete(f"/v1/jobs/{first['id']}/output")).status_code == 200
    await started(reader, "dot")
    for format in ("json", "csv", "dot", "gexf"):
        await started(writer, format)


async def test_the_limit_on_exports_of_a_reader_applies_to_concurrent_requests(
    writer: httpx2.AsyncClient, reader: httpx2.AsyncClient
) -> None:
    formats = ("json", "csv", "dot", "gexf", "graphml", "mermaid")
    answers = await asyncio.gather(*(reader.post(EXPORTS, json={"format": format}) for format in formats))
    assert sorted(answer.status_code for answer in answers) == [202, 202, 409, 409, 409, 409]
    begun = [answer.json() for answer in answers if answer.status_code == 202]
    assert [await started(reader, formats[answers.index(each)]) for each in answers if each.is_success] == begun, (
        "an equal one that is under way is answered, however many there are"
    )


async def test_a_reader_can_cancel_their_own_export(
    gateway: RunningGateway,
    issue: NewApiKey,
    caller: Caller,
    writer: httpx2.AsyncClient,
    reader: httpx2.AsyncClient,
) -> None:
    own, theirs = await started(reader), await started(writer, "csv")
    other = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
    async with gateway.http(other.secret) as http:
        problem(await http.post(f"/v1/jobs/{own['id']}/cancel"), 403, "scope_required")
    assert (await reader.post(f"/v1/jobs/{own['id']}/cancel")).json()["status"] == "cancelled"
    problem(await reader.post(f"/v1/jobs/{theirs['id']}/cancel"), 403, "scope_required")
    looked = (await writer.post("/v1/graphs/default/reindex")).json()
    problem(await reader.post(f"/v1/jobs/{looked['id']}/cancel"), 403, "scope_required")
    assert (await writer.post(f"/v1/jobs/{theirs['id']}/cancel")).json()["status"] == "cancelled"


async def test_outputs_are_for_their_requester_and_for_writers(
    gateway: RunningGateway,
    issue: NewApiKey,
    new_tenant: NewTenant,
    writer: httpx2.AsyncClient,
    reader: httpx2.AsyncClient,
    worker: WorkerContext,
) -> None:
    theirs, own = await started(writer), await started(reader, "csv")
    await job_loop.sweep(worker)
    problem(await reader.delete(f"/v1/jobs/{theirs['id']}/output"), 403, "scope_required")
    problem(await reader.post(f"/v1/jobs/{theirs['id']}/cancel"), 403, "scope_required")
    other = await issue(operator_caller(await new_tenant()), kind="admin")
    async with gateway.http(other.secret) as http:
        for job_id in (own["id"], uuid4()):
            problem(await http.delete(f"/v1/jobs/{job_id}/output"), 404, "job_not_found")
    assert (await writer.get(f"/v1/jobs/{own['id']}/output")).status_code == 200
    assert (await writer.delete(f"/v1/jobs/{own['id']}/output")).json()["output_deleted"] is True
    problem(await writer.delete(f"/v1/jobs/{uuid4()}/output"), 404, "job_not_found")
