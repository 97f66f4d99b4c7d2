"""Toolset `organize`: duplicates, compression, archiving and validation, as in the enhanced memory server."""

import json
from typing import Any

import pytest
from mcp import Client

from recollect.caller import Caller
from recollect.curation.duplicates import service as duplicates
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.gateway import answer, error_of, revision_of, text_of
from tests.support.memories import Agent


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller)


async def create(client: Client, *entities: tuple[str, str, list[str]], **fields: Any) -> None:
    wanted = [{"name": n, "entityType": kind, "observations": said, **fields} for n, kind, said in entities]
    await answer(client, "create_entities", entities=wanted)


async def names(client: Client) -> list[str]:
    return [entity["name"] for entity in (await answer(client, "read_graph"))["entities"]]


ALIKE = [
    ("Acme Inc", "company", ["makes anvils", "is in Oslo"]),
    ("ACME Inc.", "company", ["makes anvils", "Is in Oslo"]),
    ("Acme Inc..", "company", ["makes anvils", "is in Oslo"]),
    ("Acme Inc!", "cat", ["makes anvils", "is in Oslo"]),
    ("Bolt Ltd", "company", ["makes bolts"]),
]


class TestFindDuplicates:
    @pytest.mark.proves("organize: find_duplicates")
    async def test_groups_are_arrays_in_the_text_oldest_first(self, client: Client) -> None:
        await create(client, *ALIKE)
        result = await client.call_tool("find_duplicates", {})
        assert result.structured_content == {"groups": [["Acme Inc", "ACME Inc.", "Acme Inc.."]]}
        assert json.loads(text_of(result)) == [["Acme Inc", "ACME Inc.", "Acme Inc.."]]

    @pytest.mark.proves("enhanced-server: upkeep")
    async def test_duplicates_have_one_type_and_reach_the_threshold(self, client: Client) -> None:
        await create(client, *ALIKE)
        assert (await answer(client, "find_duplicates", threshold=1))["groups"] == []
        # "acme inc.." differs in two of ten letters: 0.4 · 0.8 + 0.3 + 0.2.
        assert (await answer(client, "find_duplicates", threshold=0.83))["groups"] == [["Acme Inc", "ACME Inc."]]
        low = (await answer(client, "find_duplicates", threshold=0))["groups"]
        assert low == [["Acme Inc", "ACME Inc.", "Acme Inc..", "Bolt Ltd"]]

    async def test_duplicates_are_listed_in_pages_and_as_of_a_revision(
        self, client: Client, db: Database, caller: Caller
    ) -> None:
        await create(client, *ALIKE, ("Bolt Ltd.", "company", ["makes bolts"]))
        before = await revision_of(db, caller)
        await answer(client, "delete_entities", entityNames=["Acme Inc", "ACME Inc."])
        first = await answer(client, "find_duplicates", limit=1, as_of=str(before))
        assert first == {"groups": [["Acme Inc", "ACME Inc.", "Acme Inc.."]], "nextOffset": 1}
        rest = await answer(client, "find_duplicates", offset=1, as_of=str(before))
        assert rest == {"groups": [["Bolt Ltd", "Bolt Ltd."]]}
        assert await answer(client, "find_duplicates") == rest

    async def test_deleted_archived_and_placeholder_entities_are_no_duplicates(self, client: Client) -> None:
        await create(client, *ALIKE[:3])
        await create(client, ("Cobalt", "metal", ["is blue"]), ("Cobalts", "metal", ["is blue"]))
        await answer(client, "delete_entities", entityNames=["Acme Inc"])
        await answer(client, "revise", name="Cobalts", status="archived")
        await answer(
            client, "create_relations", relations=[{"from": "ACME Inc.", "to": "ACME Inc", "relationType": "is"}]
        )
        assert (await answer(client, "find_duplicates"))["groups"] == [["ACME Inc.", "Acme Inc.."]]

    async def test_a_graph_too_large_to_compare_is_refused(
        self, client: Client, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await create(client, *ALIKE)
        monkeypatch.setattr(duplicates, "MAX_COMPARED", 4)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            with pytest.raises(Exception, match="a job can compare") as refused:
                await duplicates.open_search(await graphs.view(tx, None), threshold=0.8)
        assert getattr(refused.value, "code", None) == "reply_too_large"

    async def test_an_unknown_graph_has_no_duplicates(self, client: Client) -> None:
        assert await answer(client, "find_duplicates", graph="nowhere") == {"groups": []}


class TestCompressGraph:
    @pytest.mark.proves("organize: compress_graph", "enhanced-server: upkeep")
    async def test_each_group_is_merged_into_its_oldest_entity(self, client: Client) -> None:
        await create(client, *ALIKE)
        await answer(
            client,
            "create_relations",
            relations=[{"from": "Acme Inc..", "to": "Bolt Ltd", "relationType": "supplies"}],
        )
        assert await answer(client, "compress_graph") == {
            "duplicatesFound": 1,
            "entitiesMerged": 2,
            "observationsCompressed": 3,
            "relationsConsolidated": 1,
            "spaceFreed": 0,
            "mergedEntities": [{"kept": "Acme Inc", "merged": ["ACME Inc.", "Acme Inc.."]}],
        }
        graph = await answer(client, "read_graph")
        assert [entity["name"] for entity in graph["entities"]] == ["Acme Inc", "Acme Inc!", "Bolt Ltd"]
        assert graph["entities"][0]["observations"] == ["makes anvils", "is in Oslo", "Is in Oslo"]
        assert graph["relations"] == [{"from": "Acme Inc", "to": "Bolt Ltd", "relationType": "supplies"}]

    @pytest.mark.proves("organize: compress_graph")
    async def test_a_dry_run_of_a_compression_writes_nothing(
        self, client: Client, db: Database, caller: Caller
    ) -> None:
        await create(client, *ALIKE)
        relation = {"from": "Acme Inc..", "to": "Bolt Ltd", "relationType": "supplies"}
        await answer(client, "create_relations", relations=[relation])
        before, revision = await names(client), await revision_of(db, caller)
        told = await answer(client, "compress_graph", dryRun=True)
        assert told["mergedEntities"] == [{"kept": "Acme Inc", "merged": ["ACME Inc.", "Acme Inc.."]}]
        assert (await names(client), await revision_of(db, caller)) == (before, revision)
        assert await answer(client, "compress_graph") == told

    async def test_compressing_an_unknown_graph_does_not_create_it(self, client: Client) -> None:
        for dry_run in (True, False):
            told = await answer(client, "compress_graph", graph="nowhere", dryRun=dry_run)
            assert told["duplicatesFound"] == 0
        assert [graph["name"] for graph in (await answer(client, "list_graphs"))["graphs"]] == ["default"]


class TestLargeGraphs:
    """A comparison that is too large for a call is done by a job; here, of more than four entities."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(duplicates, "MAX_COMPARED", 4)

    @pytest.mark.proves("organize: propose_duplicates", "admin: propose_duplicates")
    async def test_duplicates_are_found_after_a_job_proposed_them(self, client: Client, context: WorkerContext) -> None:
        await create(client, *ALIKE)
        refused = await client.call_tool("find_duplicates", {})
        assert "call propose_duplicates" in text_of(refused)
        job = await answer(client, "propose_duplicates", threshold=0.8)
        assert (await answer(client, "propose_duplicates", threshold=0.8))["id"] == job["id"]
        await job_loop.sweep(context)
        shown = await answer(client, "get_job", id=job["id"])
        assert (shown["status"], shown["result"]["compared"], shown["result"]["merged"]) == ("succeeded", 5, 0)
        found = await answer(client, "find_duplicates", threshold=0.8)
        assert found == {"groups": [["Acme Inc", "ACME Inc.", "Acme Inc.."]]}
        again = await answer(client, "propose_duplicates", threshold=0.3)
        await job_loop.sweep(context)
        assert (await answer(client, "get_job", id=again["id"]))["result"]["compared"] == 5, "though none changed"
        assert "Bolt Ltd" in str(await answer(client, "find_duplicates", threshold=0.3))

    async def test_compression_by_a_job_merges_by_its_own_threshold(
        self, client: Client, context: WorkerContext
    ) -> None:
        await create(client, *ALIKE)
        await answer(client, "propose_duplicates", threshold=0.8)
        await job_loop.sweep(context)
        metadata = {"dedup": {"mode": "propose", "threshold": 1.0}}
        await answer(client, "update_graph_config", name="default", metadata=metadata)
        assert "call propose_duplicates" in text_of(await client.call_tool("compress_graph", {"dryRun": True}))
        said = await answer(client, "compress_graph", threshold=0.8)
        assert (said["entitiesMerged"], said["mergedEntities"], said["job"]["status"]) == (0, [], "queued")
        assert len(await names(client)) == 5
        await job_loop.sweep(context)
        shown = await answer(client, "get_job", id=said["job"]["id"])
        assert (shown["status"], shown["result"]["merged"]) == ("succeeded", 2)
        assert await names(client) == ["Acme Inc", "Acme Inc!", "Bolt Ltd"]
        again = await answer(client, "compress_graph", threshold=0.8)
        assert "job" not in again, "it is small now"

    async def test_a_threshold_below_that_of_jobs_is_refused(self, client: Client) -> None:
        await create(client, *ALIKE)
        refused = await client.call_tool("compress_graph", {"threshold": 0.1})
        assert error_of(refused) == {"code": "invalid_input", "path": "threshold"}


class TestArchiveEntities:
    @pytest.mark.proves("organize: archive_entities", "enhanced-server: upkeep")
    async def test_every_criterion_must_match(self, client: Client) -> None:
        await create(client, ("Old", "note", ["x"]), tags=["Draft"], importance=1)
        await create(client, ("Dear", "note", ["x"]), tags=["draft"], importance=9)
        await create(client, ("Plain", "note", ["x"]))
        later = "2099-01-01T00:00:00Z"
        for criteria, expected in (
            ({"olderThan": later}, ["Old", "Dear", "Plain"]),
            ({"olderThan": "2020-01-01T00:00:00Z"}, []),
            ({"importanceBelow": 9}, ["Old"]),
            ({"importanceBelow": 10}, ["Old", "Dear"]),
            ({"tags": ["DRAFT", "other"]}, ["Old", "Dear"]),
            ({"olderThan": later, "importanceBelow": 5, "tags": ["draft"]}, ["Old"]),
        ):
            told = await answer(client, "archive_entities", **criteria, dryRun=True)
            assert told == {"archived": len(expected), "entityNames": expected}

    @pytest.mark.proves("organize: archive_entities")
    async def test_an_archived_entity_is_not_recalled_and_still_exists(self, client: Client) -> None:
        await create(client, ("Old", "note", ["the kettle whistles"]), importance=1)
        assert (await answer(client, "recall", query="kettle"))["memories"]
        assert await answer(client, "archive_entities", importanceBelow=2) == {"archived": 1, "entityNames": ["Old"]}
        assert (await answer(client, "recall", query="kettle"))["memories"] == []
        assert await names(client) == ["Old"]
        assert await answer(client, "archive_entities", importanceBelow=2) == {"archived": 0, "entityNames": []}

    async def test_a_dry_run_of_archiving_writes_nothing(self, client: Client, db: Database, caller: Caller) -> None:
        await create(client, ("Old", "note", ["x"]), importance=1)
        revision = await revision_of(db, caller)
        assert (await answer(client, "archive_entities", importanceBelow=2, dryRun=True))["archived"] == 1
        assert await revision_of(db, caller) == revision

    async def test_without_a_criterion_nothing_is_archived(self, client: Client) -> None:
        result = await client.call_tool("archive_entities", {"dryRun": True})
        assert error_of(result) == {"code": "invalid_input", "path": "olderThan"}


class TestValidateGraph:
    @pytest.mark.proves("organize: validate_graph", "enhanced-server: upkeep")
    async def test_invalid_parts_of_a_graph_are_reported(self, client: Client, db: Database, caller: Caller) -> None:
        await create(client, ("Ada", "person", ["writes"]), ("Silent", "person", []))
        untyped = {"entities": [{"name": "Untyped", "entityType": "", "observations": ["x"]}]}
        await answer(client, "import_graph", format="json", data=json.dumps(untyped), mergeStrategy="skip")
        await answer(client, "create_relations", relations=[{"from": "Ada", "to": "Nobody", "relationType": "knows"}])
        before = await revision_of(db, caller)
        found = await answer(client, "validate_graph")
        assert found == {
            "isValid": False,
            "issues": [
                {
                    "type": "orphaned_relation",
                    "message": "Relation of an entity that does not exist",
                    "details": {"from": "Ada", "to": "Nobody", "relationType": "knows"},
                }
            ],
            "warnings": [
                {
                    "type": "empty_observations",
                    "message": "Entity without observations",
                    "details": {"entity": "Silent"},
                },
                {"type": "isolated_entity", "message": "Entity without relations", "details": {"entity": "Silent"}},
                {"type": "isolated_entity", "message": "Entity without relations", "details": {"entity": "Untyped"}},
                {"type": "missing_type", "message": "Entity without a type", "details": {"entity": "Untyped"}},
            ],
            "summary": {
                "totalErrors": 1,
                "totalWarnings": 4,
                "orphanedRelationsCount": 1,
                "entitiesWithoutObservations": 1,
            },
        }
        await create(client, ("Nobody", "person", ["is here now"]))
        assert (await answer(client, "validate_graph"))["isValid"]
        assert await answer(client, "validate_graph", as_of=str(before)) == found

    async def test_a_missing_parent_is_reported(self, client: Client) -> None:
        await create(client, ("Child", "person", ["x"]), ("Parent", "person", ["x"]))
        await answer(client, "set_entity_parent", entityName="Child", parentName="Parent")
        await answer(client, "delete_entities", entityNames=["Parent"])
        [issue] = (await answer(client, "validate_graph"))["issues"]
        assert (issue["type"], issue["details"]) == ("missing_parent", {"entity": "Child"})

    async def test_many_issues_of_one_kind_are_counted(self, client: Client) -> None:
        await create(client, *((f"Silent {n}", "person", []) for n in range(120)))
        result = await client.call_tool("validate_graph", {"limit": 500})
        assert result.structured_content is not None
        assert result.structured_content["summary"]["entitiesWithoutObservations"] == 120
        assert len(result.structured_content["warnings"]) == 200
        assert "40 more" in str(result.content[1])

    async def test_an_empty_graph_is_valid(self, client: Client) -> None:
        assert (await answer(client, "validate_graph", graph="nowhere"))["isValid"]
