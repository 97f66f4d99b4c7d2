"""What the Python client reads and administers, against the gateway."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect_client import AsyncRecollect, NotFoundError, Recollect, VersionConflictError


async def test_nodes_and_their_histories(client: Recollect, aclient: AsyncRecollect) -> None:
    client.remember("drinks tea", about="Ada Lovelace", kind="person")
    client.remember([f"Bee {number} is busy" for number in range(5)])
    assert len(list(client.nodes(limit=2))) == 6
    assert [node.name async for node in aclient.nodes(prefix="Ada")] == ["Ada Lovelace"]
    ada = client.node("Ada Lovelace")
    assert (ada.kind, ada.observations, ada.version) == ("person", ["drinks tea"], 1)
    assert [version.version for version in client.history(ada.id)] == [1]
    assert next(client.search("Lovelace")).node.id == ada.id
    assert list(client.relations(ada.id)) == []
    with pytest.raises(NotFoundError) as missing:
        client.node("Grace")
    assert missing.value.code in ("entity_not_found", "node_not_found")


async def test_a_pair_is_dismissed_and_taken_back(client: Recollect, aclient: AsyncRecollect) -> None:
    client.remember("They are cousins", about=["Ada Lovelace", "Ada Lovelac"])
    ada, cousin = sorted(client.nodes(prefix="Ada"), key=lambda node: node.name or "")
    client.dismiss_pair(ada.id, cousin.id)
    client.dismiss_pair(cousin.id, ada.id)
    [pair] = list(client.dismissals())
    assert {(pair.node_id, pair.name), (pair.other_id, pair.other)} == {
        (ada.id, "Ada Lovelac"),
        (cousin.id, "Ada Lovelace"),
    }
    assert pair.dismissed_at <= datetime.now(UTC) + timedelta(minutes=1)
    await aclient.take_back_dismissal(ada.id, cousin.id)
    assert [pair async for pair in aclient.dismissals()] == []
    with pytest.raises(NotFoundError):
        await aclient.dismiss_pair(ada.id, uuid4())


async def test_a_graph_is_changed_only_as_it_was_read(admin: AsyncRecollect) -> None:
    made = await admin.create_graph("project", metadata={"team": "bees"})
    assert (made.name, made.metadata) == ("project", {"team": "bees"})
    read = await admin.get_graph("project")
    assert (read.revision >= 0, read.etag is not None) == (True, True)
    changed = await admin.update_graph("project", metadata={"team": "wasps"}, if_match=read.etag)
    assert changed.metadata == {"team": "wasps"}
    with pytest.raises(VersionConflictError) as late:
        await admin.update_graph("project", metadata={"team": "ants"}, if_match=read.etag)
    assert late.value.status == 412
    assert {graph.name async for graph in admin.graphs()} >= {"project"}
    would = await admin.erase_graph("project", dry_run=True)
    assert would.dry_run
    await admin.erase_graph("project")
    with pytest.raises(NotFoundError):
        await admin.get_graph("project")


async def test_settings_are_changed_and_cleared(admin: AsyncRecollect) -> None:
    tenant = await admin.update_tenant(time_zone="Europe/Berlin", retention_days=30)
    assert (tenant.settings.time_zone, tenant.settings.retention_days) == ("Europe/Berlin", 30)
    tenant = await admin.update_tenant(name="Bees Ltd", time_zone=None)
    assert (tenant.name, tenant.settings.time_zone, tenant.settings.retention_days) == ("Bees Ltd", None, 30)
    assert (await admin.tenant()).id == tenant.id
    assert (await admin.plan()).quotas


async def test_a_keys_life(admin: AsyncRecollect) -> None:
    issued = await admin.create_key("of a test", scopes="memory:read", expires_at=datetime.now(UTC) + timedelta(days=9))
    assert issued.secret.startswith("rcl_")
    read = await admin.get_key(issued.id)
    assert (read.name, read.scopes) == ("of a test", ["memory:read"])
    successor = await admin.rotate_key(issued.id, overlap_hours=0)
    assert successor.secret != issued.secret
    assert (await admin.revoke_key(successor.id)).revoked_at
    assert {key.id async for key in admin.keys(limit=1)} >= {issued.id, successor.id}
    assert [entry.objects async for entry in admin.audit(action="key.revoked")] == [[f"key:{successor.id}"]]
    actions = [entry.action async for entry in admin.audit(limit=1)]
    assert (actions[0], "key.created" in actions) == ("key.revoked", True)


async def test_jobs_are_listed_and_cancelled(admin: AsyncRecollect) -> None:
    await admin.remember("Bees make honey")
    started = await admin.request("POST", "/v1/graphs/default/reindex")
    [job] = [job async for job in admin.jobs(graph="default")]
    assert (job.id, job.kind) == (started["id"], "reindex_passages")
    assert (await admin.cancel_job(job.id)).cancel_requested
    assert (await admin.get_job(job.id)).etag


async def test_webhooks_people_and_usage(admin: AsyncRecollect) -> None:
    made = await admin.create_webhook("https://hooks.example.com/recollect", "graph.changed", description="bees")
    assert made.secret
    assert [webhook.description async for webhook in admin.webhooks()] == ["bees"]
    await admin.delete_webhook(made.id)
    assert [webhook async for webhook in admin.webhooks()] == []
    assert [member async for member in admin.members()] == []
    now = datetime.now(UTC)
    assert [row async for row in admin.usage(now - timedelta(days=1), now, per="all")] == []
    await admin.remember("Bees make honey")
    assert [(counts.graph, counts.facts) async for counts in admin.stored()] == [("default", 1)]


async def test_a_route_without_a_method_of_its_own(client: Recollect, admin: AsyncRecollect) -> None:
    client.remember("Bees make honey")
    exported = await admin.request("GET", "/v1/graphs/default/export", query={"format": "markdown"})
    assert "Bees make honey" in exported
    assert (await admin.request("GET", "/v1/tenant"))["slug"]
