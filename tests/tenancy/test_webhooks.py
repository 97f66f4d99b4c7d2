"""Webhooks are isolated by tenant: neither read, nor changed, nor notified, nor revealed."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.webhooks.events import service as events
from recollect.webhooks.events.model import EventType
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.webhooks import WebhookDesk, at_desk, receiving

URL = "https://hooks.example.com/"


@pytest.fixture
async def mine(
    settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller
) -> AsyncIterator[WebhookDesk]:
    async with at_desk(settings, db, owner, caller) as desk:
        yield desk


@pytest.fixture
async def theirs(mine: WebhookDesk, new_tenant: NewTenant) -> WebhookDesk:
    return WebhookDesk(mine.db, operator_caller(await new_tenant()), mine.owner, mine.worker)


async def rows(owner: asyncpg.Connection, caller: Caller) -> list[str]:
    """Every row about webhooks of a tenant."""
    found = []
    for table in ("webhooks", "webhook_cursors", "webhook_deliveries"):
        query = f"SELECT to_jsonb(x)::text AS row FROM {table} x WHERE tenant_id = $1 ORDER BY 1"
        found += [row["row"] for row in await owner.fetch(query, caller.tenant_id)]
    return found


@pytest.mark.proves("security: events-of-one-tenant")
async def test_ids_of_another_tenant_look_like_unknown_ones_on_every_route(
    gateway: RunningGateway, issue: NewApiKey, mine: WebhookDesk, theirs: WebhookDesk
) -> None:
    hook = (await mine.make(URL, *EventType)).webhook
    delivery = await mine.test(hook.id)
    own = (await theirs.make(URL)).webhook
    before = await rows(mine.owner, mine.caller)
    since = {"since": "2026-01-01T00:00:00Z"}
    calls = [
        ("GET", "{hook}", None),
        ("PATCH", "{hook}", {"enabled": False}),
        ("DELETE", "{hook}", None),
        ("POST", "{hook}/secret", {"overlap_hours": 0}),
        ("POST", "{hook}/test", None),
        ("POST", "{hook}/replay", since),
        ("GET", "{hook}/deliveries", None),
        ("POST", "{hook}/deliveries/{delivery}/replay", None),
        ("POST", f"{own.id}/deliveries/{{delivery}}/replay", None),
    ]
    secret = (await issue(theirs.caller, kind="admin")).secret
    async with gateway.http(secret) as http:
        for method, path, body in calls:
            told = []
            for ids in ({"hook": hook.id, "delivery": delivery.id}, {"hook": uuid4(), "delivery": uuid4()}):
                response = await http.request(method, f"/v1/webhooks/{path.format(**ids)}", json=body)
                told.append((response.status_code, response.json()))
            assert told[0] == told[1], path
            assert told[0][0] == 404
        assert [each["id"] for each in (await http.get("/v1/webhooks")).json()["items"]] == [str(own.id)]
        after = f"/v1/webhooks?cursor={hook.id}"
        assert [each["id"] for each in (await http.get(after)).json()["items"]] == [str(own.id)]
        cursor = f"/v1/webhooks/{own.id}/deliveries?cursor={delivery.id}"
        assert (await http.get(cursor)).json()["items"] == []
    assert await rows(mine.owner, mine.caller) == before


async def test_a_webhook_cannot_name_a_graph_of_another_tenant(
    gateway: RunningGateway, issue: NewApiKey, mine: WebhookDesk, theirs: WebhookDesk
) -> None:
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        foreign = (await graphs.get_graph(tx, "default")).id
    secret = (await issue(theirs.caller, kind="admin")).secret
    own = (await theirs.make(URL)).webhook
    async with gateway.http(secret) as http:
        told = []
        for graph in (foreign, uuid4()):
            body = {"url": URL, "events": ["graph.changed"], "graphs": [str(graph)]}
            made = await http.post("/v1/webhooks", json=body)
            changed = await http.patch(f"/v1/webhooks/{own.id}", json={"graphs": [str(graph)]})
            told.append(json.dumps([made.json(), changed.json()]).replace(str(graph), "…"))
            assert (made.status_code, changed.status_code) == (404, 404)
        assert told[0] == told[1]


@pytest.mark.proves("security: events-of-one-tenant")
async def test_a_webhook_receives_no_events_of_another_tenant(mine: WebhookDesk, theirs: WebhookDesk) -> None:
    async with receiving() as receiver, receiving() as other:
        made, their_hook = await mine.make(receiver.url, *EventType), await theirs.make(other.url, *EventType)
        graph = await theirs.graph("same-name")
        await theirs.write("Ada", graph="same-name")
        await mine.tell()
        await mine.tell()
        assert receiver.ids == []
        assert {event["data"]["graph"] for event in other.events(their_hook.secret)} == {str(graph)}
        await mine.write("Ada")
        await mine.tell()
        assert len(receiver.events(made.secret)) == 1
        assert str(graph) not in receiver.server.requests[0][1].decode()


@pytest.mark.proves("security: events-of-one-tenant")
async def test_a_webhook_with_a_foreign_graph_id_receives_nothing_of_that_graph(
    mine: WebhookDesk, theirs: WebhookDesk
) -> None:
    """The id is forced into the table, which tests each guard by itself."""
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        foreign = (await graphs.get_graph(tx, "default")).id
    async with receiving() as receiver:
        await theirs.make(receiver.url, *EventType, graph_ids=[foreign])
        await mine.owner.execute(
            "INSERT INTO webhook_cursors SELECT tenant_id, id, $2, 0 FROM webhooks WHERE tenant_id = $1",
            theirs.caller.tenant_id,
            foreign,
        )
        await mine.write("Ada")
        async with theirs.db.transaction(theirs.caller) as tx:
            assert await events.collect(tx) == 1, "that there is no such graph"
        await theirs.tell()
        [(_, body)] = receiver.server.requests
        assert json.loads(body)["type"] == "graph.deleted"


@pytest.mark.proves("security: webhook-secrets")
async def test_an_event_is_signed_only_with_the_webhooks_own_secret(mine: WebhookDesk, theirs: WebhookDesk) -> None:
    async with receiving() as receiver:
        made, their_hook = await mine.make(receiver.url), await theirs.make(receiver.url)
        await mine.owner.execute(
            "UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = $2) WHERE id = $1",
            their_hook.webhook.id,
            made.webhook.id,
        )
        await theirs.test(their_hook.webhook.id)
        await theirs.tell()
        assert receiver.ids == [], "a secret that was copied from another tenant's row opens nothing"
