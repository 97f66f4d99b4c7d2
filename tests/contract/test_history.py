"""Toolset `admin`: the log of changes of a graph, and undoing changes."""

import json
from collections.abc import AsyncIterator

import pytest
from mcp import Client

from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.support.gateway import NewApiKey, RunningGateway, answer, error_of, in_one_task, revision_of


@pytest.fixture
async def colleague(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> AsyncIterator[Client]:
    """Another key of the same tenant."""
    async with in_one_task(gateway.client((await issue(caller)).secret, "/mcp/x/all")) as client:
        yield client


async def create(client: Client, name: str, *said: str) -> None:
    await answer(client, "create_entities", entities=[{"name": name, "entityType": "person", "observations": [*said]}])


async def names(client: Client) -> list[str]:
    return [entity["name"] for entity in (await answer(client, "read_graph"))["entities"]]


class TestRecentChanges:
    @pytest.mark.proves("admin: recent_changes")
    async def test_the_log_is_listed_in_pages_oldest_first(self, client: Client, colleague: Client) -> None:
        await create(client, "Ada", "writes")
        await create(colleague, "Babbage")
        await answer(client, "delete_entities", entityNames=["Babbage"])
        first = await answer(client, "recent_changes", since_revision=0, limit=2)
        assert [(c["revision"], c["operation"]) for c in first["changes"]] == [
            (1, "create_entities"),
            (2, "create_entities"),
        ]
        assert first["more"]
        assert first["changes"][0]["actor"] != first["changes"][1]["actor"]
        assert first["changes"][0]["counts"] == {"entities_added": 1, "observations_added": 1}
        assert len(first["changes"][0]["ids"]) == 2
        rest = await answer(client, "recent_changes", since_revision=2)
        assert ([c["operation"] for c in rest["changes"]], rest["more"]) == (["delete_entities"], False)
        assert await answer(client, "recent_changes", since_revision=3) == {"changes": [], "more": False}

    async def test_the_log_contains_no_text_and_a_bounded_number_of_ids(self, client: Client) -> None:
        entities = [{"name": f"secret {n}", "entityType": "secret", "observations": []} for n in range(101)]
        await answer(client, "create_entities", entities=entities)
        told = await answer(client, "recent_changes", since_revision=0)
        [change] = told["changes"]
        assert (len(change["ids"]), change["ids_cut"], change["counts"]) == (100, True, {"entities_added": 101})
        assert "secret" not in json.dumps(told)

    async def test_an_unknown_graph_has_no_changes(self, client: Client) -> None:
        nothing = await answer(client, "recent_changes", graph="nowhere", since_revision=0)
        assert nothing == {"changes": [], "more": False}


class TestUndoChanges:
    @pytest.mark.proves("admin: undo_changes")
    async def test_the_changes_of_one_actor_are_undone_and_others_stay(self, client: Client, colleague: Client) -> None:
        await create(client, "Ada", "writes")
        await create(colleague, "Babbage", "builds")
        await create(client, "Grace")
        log = (await answer(client, "recent_changes", since_revision=0))["changes"]
        told = await answer(client, "undo_changes", since_revision=0, actor=log[1]["actor"])
        assert told == {
            "dry_run": False,
            "nodes_restored": 0,
            "nodes_removed": 1,
            "observations_restored": 0,
            "observations_removed": 0,
            "relations_restored": 0,
            "relations_removed": 0,
            "skipped": [],
            "skipped_count": 0,
        }
        assert await names(client) == ["Ada", "Grace"]

    async def test_a_dry_run_reports_the_same_and_writes_nothing(
        self, client: Client, db: Database, caller: Caller
    ) -> None:
        await create(client, "Ada", "writes")
        await answer(client, "delete_entities", entityNames=["Ada"])
        revision = await revision_of(db, caller)
        dry = await answer(client, "undo_changes", since_revision=1, dry_run=True)
        assert await revision_of(db, caller) == revision
        wet = await answer(client, "undo_changes", since_revision=1)
        assert (dry["dry_run"], wet["dry_run"]) == (True, False)
        assert dry | {"dry_run": False} == wet
        assert (wet["nodes_restored"], wet["observations_restored"]) == (1, 1)
        opened = await answer(client, "open_nodes", names=["Ada"])
        assert opened["entities"][0]["observations"] == ["writes"]

    @pytest.mark.proves("enhanced-server: undo-of-a-merge")
    async def test_a_compression_is_undone(self, client: Client) -> None:
        await create(client, "Acme Inc", "makes anvils")
        await create(client, "Acme Inc.", "makes anvils")
        assert (await answer(client, "compress_graph"))["entitiesMerged"] == 1
        await answer(client, "undo_changes", since_revision=2)
        assert await names(client) == ["Acme Inc", "Acme Inc."]

    @pytest.mark.proves("admin: undo_changes")
    async def test_a_node_that_was_changed_later_is_skipped_and_reported(
        self, client: Client, colleague: Client
    ) -> None:
        await create(client, "Ada", "writes")
        await create(colleague, "Babbage")
        await answer(client, "add_observations", observations=[{"entityName": "Babbage", "contents": ["builds"]}])
        log = (await answer(client, "recent_changes", since_revision=0))["changes"]
        told = await answer(client, "undo_changes", since_revision=0, actor=log[1]["actor"])
        assert told["skipped"] == [{"id": log[1]["ids"][0], "reason": "changed_later"}]
        assert told["skipped_count"] == 1
        assert await names(client) == ["Ada", "Babbage"]

    async def test_a_span_that_ends_before_it_begins_is_refused(self, client: Client) -> None:
        result = await client.call_tool("undo_changes", {"since_revision": 5, "until_revision": 4})
        assert error_of(result) == {"code": "invalid_input", "path": "until_revision"}
