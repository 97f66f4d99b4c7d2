"""/v1/webhooks over HTTP: creating, listing, changing, testing, replaying and deleting, and who may."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.webhooks.events.model import EventType
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.webhooks import LOOPBACK, Receiver, WebhookDesk, at_desk, receiving

URL = "https://hooks.example.com/recollect"
SINCE = {"since": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def gateway(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose webhooks may use receivers on loopback."""
    with serving(settings.model_copy(update={"outbound_networks": [LOOPBACK]})) as gateway:
        yield gateway


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


@pytest.fixture
async def desk(
    settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller
) -> AsyncIterator[WebhookDesk]:
    async with at_desk(settings, db, owner, caller) as desk:
        yield desk


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def make(http: httpx2.AsyncClient, url: str = URL, **more: Any) -> dict[str, Any]:
    response = await http.post("/v1/webhooks", json={"url": url, "events": ["graph.changed"]} | more)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def test_a_webhook_is_created_tested_and_its_deliveries_replayed(
    http: httpx2.AsyncClient, desk: WebhookDesk, receiver: Receiver
) -> None:
    made = await make(http, receiver.url, description="our mirror")
    hook = f"/v1/webhooks/{made['id']}"
    assert made["secret"].startswith("whsec_")
    await desk.write("Ada")
    tested = await http.post(f"{hook}/test")
    assert (tested.status_code, tested.json()["status"], tested.json()["event"]) == (202, "pending", "webhook.test")
    await desk.tell()
    assert sorted(event["type"] for event in receiver.events(made["secret"])) == ["graph.changed", "webhook.test"]
    page = (await http.get(f"{hook}/deliveries?limit=1")).json()
    assert [page["items"][0]["event"], page["items"][0]["last_status"]] == ["graph.changed", 200]
    rest = (await http.get(f"{hook}/deliveries?limit=1&cursor={page['next_cursor']}")).json()
    assert ([each["id"] for each in rest["items"]], rest["next_cursor"]) == ([tested.json()["id"]], None)
    again = await http.post(f"{hook}/deliveries/{tested.json()['id']}/replay")
    assert (again.status_code, again.json()["status"]) == (202, "pending")
    assert [each["id"] for each in (await http.get(f"{hook}/deliveries?status=pending")).json()["items"]] == [
        tested.json()["id"]
    ]
    await desk.tell()
    assert receiver.ids.count(tested.json()["id"]) == 2
    assert (await http.post(f"{hook}/replay", json=SINCE)).json() == {"replayed": 0, "more": False}


async def test_a_webhook_is_read_listed_changed_and_deleted(http: httpx2.AsyncClient) -> None:
    graph = (await http.post("/v1/graphs", json={"name": "chosen"})).json()["id"]
    made = await make(http, graphs=["chosen"], events=["graph.changed", "job.failed", "graph.changed"])
    hook = f"/v1/webhooks/{made['id']}"
    secret = made.pop("secret")
    assert (await http.get(hook)).json() == made
    assert (made["graphs"], made["events"], made["enabled"]) == ([graph], ["graph.changed", "job.failed"], True)
    changed = await http.patch(hook, json={"url": f"{URL}/2", "description": "other", "enabled": False})
    assert changed.json() == made | {
        "url": f"{URL}/2",
        "description": "other",
        "enabled": False,
        "disabled_reason": "asked",
        "disabled_at": changed.json()["disabled_at"],
    }
    everything = await http.patch(hook, json={"graphs": None, "events": ["key.revoked"], "enabled": True})
    assert (everything.json()["graphs"], everything.json()["events"]) == (None, ["key.revoked"])
    second = await make(http)
    page = (await http.get("/v1/webhooks?limit=1")).json()
    assert [each["id"] for each in page["items"]] == [made["id"]]
    page = (await http.get(f"/v1/webhooks?cursor={page['next_cursor']}")).json()
    assert ([each["id"] for each in page["items"]], page["next_cursor"]) == ([second["id"]], None)
    assert secret not in (await http.get("/v1/webhooks")).text
    assert (await http.delete(hook)).status_code == 204
    assert (await http.get(hook)).json()["code"] == "webhook_not_found"


async def test_a_secret_is_rotated_with_an_overlap(http: httpx2.AsyncClient) -> None:
    made = await make(http)
    rotated = (await http.post(f"/v1/webhooks/{made['id']}/secret", json={"overlap_hours": 2})).json()
    assert rotated["secret"] != made["secret"]
    ends = datetime.fromisoformat(rotated["previous_secret_ends_at"])
    assert timedelta(minutes=119) < ends - datetime.now(UTC) <= timedelta(hours=2)
    at_once = (await http.post(f"/v1/webhooks/{made['id']}/secret", json={"overlap_hours": 0})).json()
    assert at_once["previous_secret_ends_at"] is None


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"url": URL, "events": []}, "events"),
        ({"url": URL, "events": ["graph.painted"]}, "events.0"),
        ({"url": URL, "events": ["webhook.test"]}, "events.0"),
        ({"url": URL, "events": ["graph.changed"], "graphs": []}, "graphs"),
        ({"url": URL, "events": ["graph.changed"], "secret": "whsec_mine"}, "secret"),
        ({"url": URL, "events": ["graph.changed"], "description": "a\nb"}, "description"),
        ({"url": "https://user:pass@example.com/", "events": ["graph.changed"]}, "url"),
        ({"url": "https://example.com/#here", "events": ["graph.changed"]}, "url"),
        ({"url": "/here", "events": ["graph.changed"]}, "url"),
        ({"url": "ftp://127.0.0.1/", "events": ["graph.changed"]}, "url"),
        ({"url": "https://" + "a" * 3_000, "events": ["graph.changed"]}, "url"),
    ],
)
async def test_an_invalid_webhook_is_refused_with_its_path(
    http: httpx2.AsyncClient, body: dict[str, Any], path: str
) -> None:
    refused = await http.post("/v1/webhooks", json=body)
    assert (refused.status_code, refused.json()["path"]) == (400, path)
    assert (await http.get("/v1/webhooks")).json()["items"] == []


@pytest.mark.parametrize(
    "url", ["http://example.com/", "ftp://example.com/", "https://example.com:8443/", "http://127.0.0.1:9/"]
)
async def test_an_address_must_have_tls_and_the_usual_port(settings: Settings, admin_key: str, url: str) -> None:
    with serving(settings) as strict:
        async with strict.http(admin_key) as http:
            refused = await http.post("/v1/webhooks", json={"url": url, "events": ["graph.changed"]})
    assert (refused.status_code, refused.json()["path"]) == (400, "url")


async def test_number_of_webhooks_of_a_tenant_is_limited(http: httpx2.AsyncClient) -> None:
    for _ in range(20):
        await make(http)
    refused = await http.post("/v1/webhooks", json={"url": URL, "events": ["graph.changed"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_webhooks")


async def test_the_limit_on_webhooks_applies_to_concurrent_requests(http: httpx2.AsyncClient) -> None:
    body = {"url": URL, "events": ["graph.changed"]}
    answers = await asyncio.gather(*(http.post("/v1/webhooks", json=body) for _ in range(30)))
    assert Counter(answer.status_code for answer in answers) == {201: 20, 409: 10}


async def test_a_disabled_webhook_can_be_neither_tested_nor_replayed(http: httpx2.AsyncClient) -> None:
    hook = f"/v1/webhooks/{(await make(http))['id']}"
    await http.patch(hook, json={"enabled": False})
    for path, body in (("test", None), ("replay", SINCE), (f"deliveries/{uuid4()}/replay", None)):
        refused = await http.post(f"{hook}/{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "webhook_disabled")
    await http.patch(hook, json={"enabled": True})
    refused = await http.post(f"{hook}/deliveries/{uuid4()}/replay")
    assert (refused.status_code, refused.json()["code"]) == (404, "delivery_not_found")


@pytest.mark.proves("security: webhook-admins")
async def test_webhooks_are_for_unconfined_admins_only(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, http: httpx2.AsyncClient
) -> None:
    graph = (await http.post("/v1/graphs", json={"name": "mine"})).json()["id"]
    hook = f"/v1/webhooks/{(await make(http))['id']}"
    calls = [
        ("GET", "/v1/webhooks", None),
        ("POST", "/v1/webhooks", {"url": URL, "events": ["graph.changed"], "graphs": ["mine"]}),
        ("GET", hook, None),
        ("PATCH", hook, {"description": "mine"}),
        ("DELETE", hook, None),
        ("POST", f"{hook}/secret", {}),
        ("POST", f"{hook}/test", None),
        ("GET", f"{hook}/deliveries", None),
        ("POST", f"{hook}/deliveries/{uuid4()}/replay", None),
        ("POST", f"{hook}/replay", SINCE),
    ]
    confined = await issue(caller, kind="admin", graph_ids=(graph,), default_graph_id=graph)
    agent = await issue(caller, scopes=frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}))
    for key, code in ((confined, "graph_not_allowed"), (agent, "scope_required")):
        async with gateway.http(key.secret) as other:
            for method, path, body in calls:
                refused = await other.request(method, path, json=body)
                assert (refused.status_code, refused.json()["code"]) == (403, code), (method, path)
    assert (await http.get(hook)).json()["description"] == ""


async def test_each_type_of_event_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text()
    assert [each for each in EventType if f"`{each}`" not in page] == []
