"""A gateway and a worker as processes: memories expire, duplicates are merged, graphs imported and exported."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller
from recollect.settings import Settings
from tests.e2e.test_trace import gateway
from tests.support.gateway import eventually
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import working

FILE = b"".join(
    json.dumps({"type": "entity", "name": name, "entityType": "company", "observations": [f"of {name}"]}).encode()
    + b"\n"
    for name in ("Acme Corporation", "Acme Corporatiom", "Zuse")
)


async def ended(http: httpx2.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    """Wait until the job has ended, and return it."""
    shown: dict[str, Any] = {}

    async def has_ended() -> bool:
        shown.update((await http.get(f"/v1/jobs/{job['id']}")).json())
        return shown["finished_at"] is not None

    await eventually(has_ended)
    return shown


@pytest.mark.proves("jobs: transfer")
async def test_expiry_deduplication_import_and_export_work_together(
    settings: Settings, admin_key: str, caller: Caller, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    await owner.execute("DELETE FROM jobs")
    served = settings.model_copy(update={"sweep_seconds": 1})
    headers = {"Authorization": f"Bearer {admin_key}"}
    with working(served, tmp_path), gateway(served) as address:
        async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=MAX_WAIT_SECONDS) as http:
            dedup = {"dedup": {"mode": "merge", "threshold": 0.6}}
            made = await http.post("/v1/graphs", json={"name": "companies", "metadata": dedup})
            assert made.status_code == 201, made.text
            taken = await http.post(
                "/v1/graphs/companies/imports", content=FILE, headers={"Content-Type": "application/x-ndjson"}
            )
            assert taken.status_code == 202, taken.text
            assert (await ended(http, taken.json()))["result"]["entities_created"] == 3
            # The graph may have been compared when it was empty: then the next pass is a day away.
            compared = await ended(http, (await http.post("/v1/graphs/companies/deduplicate")).json())
            assert compared["status"] == "succeeded", compared

            async def are_merged() -> bool:
                return bool((await http.get("/v1/graphs/companies")).json()["entities"] == 2)

            await eventually(are_merged)
            started = await http.post("/v1/graphs/companies/exports", json={"format": "jsonl"})
            assert (await ended(http, started.json()))["status"] == "succeeded"
            output = await http.get(f"/v1/jobs/{started.json()['id']}/output")
            assert output.headers["Content-Type"].startswith("application/x-ndjson")
            assert [json.loads(line)["name"] for line in output.text.splitlines()] == ["Acme Corporation", "Zuse"]
            await owner.execute(
                "UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE tenant_id = $1 AND name = 'Zuse'",
                caller.tenant_id,
            )
            await eventually(is_archived(owner, caller))


def is_archived(owner: asyncpg.Connection, caller: Caller) -> Callable[[], Awaitable[bool]]:
    """Makes the check whether the sweep has archived the expired node."""

    async def archived() -> bool:
        status = await owner.fetchval(
            "SELECT status FROM nodes WHERE tenant_id = $1 AND name = 'Zuse' AND removed_revision IS NULL",
            caller.tenant_id,
        )
        return bool(status == "archived")

    return archived
