"""Long work as a task, end to end: the official client, two gateways, and workers of which one is killed."""

import asyncio
import signal
from pathlib import Path

import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tools.organize import import_graph
from tests.support.gateway import RunningGateway, eventually, serving
from tests.support.jobs import Desk
from tests.support.tasks import TaskClient, patient
from tests.support.workers import begun, end_leases, working

ENTITIES = 1_100
"""Enough entities for several batches of an import, each of which is a step."""

DATA = "name\n" + "".join(f"e{number}\n" for number in range(ENTITIES))


@pytest.mark.usefixtures("no_backlog")
async def test_a_client_awaits_an_import_although_its_worker_is_killed(
    settings: Settings,
    gateway: RunningGateway,
    key: str,
    db: Database,
    caller: Caller,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_graph, "MAX_ITEMS", ENTITIES - 1)
    hasty, desk = settings.model_copy(update={"sweep_seconds": 1, "job_lease_seconds": 20}), Desk(db, caller)

    async def is_half_done() -> bool:
        return any(job.done for job in await desk.list())

    async with patient(gateway, key, "/mcp/x/organize") as (client, waits):
        called = asyncio.create_task(client.call_tool("import_graph", {"format": "csv", "data": DATA}))
        with working(hasty, tmp_path) as worker:
            await begun(worker)
            await eventually(is_half_done, every=0.02)
            worker.stop(signal.SIGKILL)
        [task_id] = waits.begun
        await end_leases(settings)
        with serving(settings) as other:
            async with other.http(key) as http:
                there = TaskClient(http)
                assert (await there.get(task_id))["status"] == "working"
                with working(hasty, tmp_path):
                    result = await called
                done = await there.get(task_id)
    told = result.structured_content
    assert told is not None
    assert (result.is_error, told["entitiesCreated"], told["problems"]) == (False, ENTITIES, 0)
    assert done["result"]["structuredContent"] == told
