"""Recollect's own metrics, as a collector gets them from a gateway and a worker."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller
from recollect.jobs.kinds import KINDS
from recollect.jobs.model import SERVER_ERROR_CODES
from recollect.settings import Settings
from recollect.telemetry.metric_readers import HTTP_ATTRIBUTES
from recollect.valkey.client import connect_redis
from tests.e2e.test_trace import gateway
from tests.support.gateway import NewApiKey, eventually
from tests.support.otlp import Collector, collecting
from tests.support.rates import NewLimited
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import embedded_within, environment, working

SECRET_TEXT = "the heron nests in the third alder"
QUESTION = "where is the heron's own nest"
DOCUMENTED = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.usefixtures("no_backlog")
async def test_a_gateway_and_a_worker_export_their_metrics(
    settings: Settings, key: str, caller: Caller, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    with collecting() as collector:
        traced = settings.model_copy(
            update={
                "otlp_endpoint": collector.endpoint,
                "cache_search_wait_seconds": 1.0,
                "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
                "redis_timeout_seconds": MAX_WAIT_SECONDS,
            }
        )
        with working(traced, tmp_path) as worker, gateway(traced) as address:
            call(address, key, "remember", {"items": [{"text": SECRET_TEXT}, {"text": "rain"}]})
            assert await embedded_within(owner, caller)
            await exported(address, key)
            worker.stop()  # What it still does to the graph would make caches look again.
            call(address, key, "recall", {"query": QUESTION})
            await eventually(lambda: is_kept(settings, caller))
            for _ in range(2):
                call(address, key, "recall", {"query": QUESTION})
            call(address, key, "recall", {"query": QUESTION, "queries": [QUESTION] * 8})
        assert collector.points("recollect.passages.embedded")[frozenset()].as_int >= 2
        assert collector.points("recollect.passages.waiting")[frozenset()].count == 3
        step = frozenset({("recollect.job.kind", "export_graph"), ("recollect.job.outcome", "finished")})
        assert collector.points("recollect.job.steps")[step].as_int == 1
        assert collector.points("recollect.job.step.duration")[step].count == 1
        looked_up = {
            (dict(at)["recollect.cache.name"], dict(at)["recollect.cache.outcome"]): point.as_int
            for at, point in collector.points("recollect.cache.requests").items()
        }
        assert looked_up == {
            ("embeddings", "hit"): 2,
            ("embeddings", "miss"): 1,
            ("search", "hit"): 2,
            ("search", "miss"): 1,
        }
        # Counters whose first increase raises an alert are exported as zero from the start.
        assert collector.points("recollect.gateway.ready")[frozenset()].as_int == 1
        for name in ("recollect.redis.away", "recollect.rate.fallbacks", "recollect.usage.uncounted"):
            assert collector.points(name)[frozenset()].as_int == 0, name
        points = collector.points("recollect.jobs.failed").items()
        failed = {(dict(at)["recollect.job.kind"], dict(at)["error.type"]): p.as_int for at, p in points}
        assert failed == {(kind, str(code)): 0 for kind in KINDS for code in SERVER_ERROR_CODES}
        assert calls(collector) == {("remember", None): 1, ("recall", None): 3, ("recall", "invalid_input"): 1}
    # Attributes are words of the code; none contains a text of a tenant.
    told = b"".join(metric.SerializeToString() for metric in collector.metrics)
    for word in (SECRET_TEXT, QUESTION, caller.tenant, str(caller.tenant_id)):
        assert word.encode() not in told
    own = {metric.name for metric in collector.metrics if metric.name.startswith(("recollect.", "mcp."))}
    assert own == {
        "recollect.notifications",
        "recollect.calls.waiting",
        "recollect.call.wait.duration",
        "recollect.passages.embedded",
        "recollect.passages.waiting",
        "recollect.cache.requests",
        "recollect.job.steps",
        "recollect.job.step.duration",
        "recollect.job.duration",
        "recollect.jobs.failed",
        "recollect.gateway.ready",
        "recollect.redis.away",
        "recollect.rate.fallbacks",
        "recollect.usage.uncounted",
        "recollect.embedding.lag",
        "recollect.queue.waiting",
        "recollect.queue.oldest.age",
        "recollect.moves",
        "recollect.move.step.age",
        "mcp.server.operation.duration",
    }
    assert all(f"`{name}`" in DOCUMENTED.read_text() for name in own)


async def is_kept(settings: Settings, caller: Caller) -> bool:
    """Whether what a recall found is in Redis, where gateways put it in the background."""
    async with connect_redis(settings) as redis:
        return bool(await redis.exists(f"recollect:recall:{{{caller.tenant_id}}}"))


async def exported(address: str, key: str) -> None:
    """Export the graph by a job, and wait for its end."""
    async with httpx2.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key}"}) as http:
        job = (await http.post("/v1/graphs/default/exports", json={})).json()

        async def has_ended() -> bool:
            shown = (await http.get(f"/v1/jobs/{job['id']}")).json()
            return bool(shown["status"] == "succeeded")

        await eventually(has_ended)


async def test_a_gateway_without_redis_exports_fallbacks_and_refusals(
    settings: Settings, issue: NewApiKey, new_limited: NewLimited, tmp_path: Path
) -> None:
    key = (await issue(await new_limited(requests_per_minute=4))).secret
    with collecting() as collector:
        alone = {"otlp_endpoint": collector.endpoint, "redis_url": f"unix://{tmp_path}/none.sock"}
        with gateway(settings.model_copy(update=alone)) as address:
            headers = {"Authorization": f"Bearer {key}"}
            told = [httpx2.get(f"{address}/v1/graphs", headers=headers, timeout=MAX_WAIT_SECONDS) for _ in range(3)]
        assert [answer.status_code for answer in told] == [200, 429, 429]
        refused = collector.points("recollect.requests.refused")
        assert {attributes: point.as_int for attributes, point in refused.items()} == {
            frozenset({("recollect.limit", "tenant")}): 2
        }
        assert collector.points("recollect.rate.fallbacks")[frozenset()].as_int == 1
        assert collector.points("recollect.redis.away")[frozenset()].as_int == 1
        http = {
            (dict(at)["http.route"], dict(at)["http.response.status_code"]): point.count
            for at, point in collector.points("http.server.request.duration").items()
        }
        assert http == {("/v1/graphs", 200): 1, ("/v1/graphs", 429): 2}
        named = {key for at in collector.points("http.server.request.duration") for key, _ in at}
        assert named <= HTTP_ATTRIBUTES
    for name in ("recollect.requests.refused", "recollect.rate.fallbacks"):
        assert f"`{name}`" in DOCUMENTED.read_text()


def test_an_audit_is_exported_even_if_an_instrument_was_used_before_setup(settings: Settings) -> None:
    """The first record comes before the provider is set, and must not keep later ones from being exported."""
    code = """
from recollect.telemetry.metrics import record_audit
from recollect.telemetry.tracing import configure_tracing
from recollect.settings import Settings
record_audit(0.1, k=10)
shutdown = configure_tracing(Settings(), "recollect-test")
record_audit(0.9, k=10)
record_audit(1.0, k=10)
shutdown()
"""
    with collecting() as collector:
        traced = settings.model_copy(update={"otlp_endpoint": collector.endpoint})
        command = [sys.executable, "-W", "error", "-c", code]
        subprocess.run(command, env=os.environ | environment(traced), check=True, timeout=MAX_WAIT_SECONDS)
        [(attributes, point)] = collector.points("recollect.recall.audit").items()
    assert attributes == {("recollect.recall.k", 10)}
    assert (point.count, point.sum) == (2, 1.9)
    assert "`recollect.recall.audit`" in DOCUMENTED.read_text()


def call(address: str, key: str, tool: str, arguments: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    response = httpx2.post(f"{address}/mcp", json=message, headers=headers, timeout=MAX_WAIT_SECONDS)
    assert response.status_code == 200, response.text


def calls(collector: Collector) -> dict[tuple[str, str | None], int]:
    """The number of calls of each tool, by their error, if any."""
    told = {}
    for attributes, point in collector.points("mcp.server.operation.duration").items():
        said = dict(attributes)
        assert said["mcp.method.name"] == "tools/call"
        assert point.sum > 0
        told[said["gen_ai.tool.name"], said.get("error.type")] = point.count
    return told
