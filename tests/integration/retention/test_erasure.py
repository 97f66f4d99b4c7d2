"""After an erasure, the erased word is in no column of any table, as the receipt says."""

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.curation.validation import service as validation
from recollect.errors import InvalidInput, NotFound
from recollect.graph.aliases import service as aliases
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.passages import service as passages
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation
from recollect.jobs import service as jobs
from recollect.jobs.model import Job, JobBounds, JobFilter, NewJob
from recollect.memory import reading, revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retention.erasure import service as erasure
from recollect.retention.erasure.model import WHERE_COPIES_REMAIN, Receipt, redacted, texts_to_search
from recollect.retention.erasure.name_patterns import pattern_of
from recollect.retention.expiry import service as expiry
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_workers import job_loop
from tests.conftest import NewTenant
from tests.support.invariants import assert_laws
from tests.support.jobs import employed
from tests.support.memories import Agent, at_work, count_words, embedded_passages, embedder, names

pytestmark = pytest.mark.whole_database

MARK = "qzxmarkqz"
SECRET = "vqkelderberryvq"
"""A word of the person's memories that is not a name. Windows of neighbours and word counts contained it, too."""


STORED = {
    "李明": ("李明喜欢茶", "昨天李明来了"),
    "田中": ("田中さんは来た",),
    "สมชาย": ("ฉันชอบสมชายมาก",),
    "김철수": ("김철수는 왔다", unicodedata.normalize("NFD", "김철수가")),
    "José": ("so Jose\u0301 left", "JOSÉ"),
    "Jose\u0301": ("so José left",),
    "straße": ("in STRASSE now", "STRAẞE"),
    "STRASSE": ("in straße now",),
    "Anne Marie": ("so Anne  Marie left", "Anne\nMarie", "ANNE\u00a0MARIE"),
    "İbrahim": ("İBRAHİM left", "with ibrahim", "i\u0307brahim"),
    "ΓΙΏΡΓΟΣ": ("ο Γιώργος ήρθε",),
    "Γιώργος": ("Ο ΓΙΏΡΓΟΣ ΉΡΘΕ",),
    "Anne\u00a0Marie": ("Anne Marie left",),
}
"""Names, and texts that contain them in other forms, or in scripts without spaces."""

LIVE_NAMES = Query.compile("SELECT name FROM nodes WHERE tenant_id = :tenant_id AND removed_revision IS NULL")


async def rows_with(owner: asyncpg.Connection, agent: Agent, word: str) -> dict[str, int]:
    """The number of the tenant's rows with a word in any column, by table. Bytes are searched, too."""
    tables = await owner.fetch(
        """SELECT t.table_name FROM information_schema.tables t
        JOIN information_schema.columns c USING (table_schema, table_name)
        WHERE t.table_schema = 'recollect' AND t.table_type = 'BASE TABLE' AND c.column_name = 'tenant_id'"""
    )
    found = {}
    for (table,) in tables:
        count = await owner.fetchval(
            f"SELECT count(*) FROM {table} x WHERE tenant_id = $1 AND (x::text ILIKE $2 OR x::text ILIKE $3)",
            agent.caller.tenant_id,
            f"%{word}%",
            f"%{word.encode().hex()}%",
        )
        if count:
            found[table] = count
    return found


async def erase(agent: Agent, name: str | None, created_by: str | None = None) -> Receipt:
    async with agent.db.transaction(agent.caller) as tx:
        return await erasure.erase_person(tx, agent.graph or "default", name, created_by=created_by)


async def write_everywhere(agent: Agent, mark: str) -> None:
    """Use a name wherever text can be stored."""
    await agent.create(
        NewEntity(mark, "person", (f"likes {SECRET}", "drinks tea"), tags=(f"{mark}-tag",)),
        NewEntity(f"{mark} the elder", "person", (f"ate {SECRET}",)),
        NewEntity("Grace", "person", ("writes programs", f"knows {mark} well", f"once met {mark}")),
        NewEntity("Bystander", "person", ("was there",)),
    )
    await agent.unobserve(("Grace", f"once met {mark}"), (mark, "drinks tea"))
    await agent.relate((mark, "Grace", "knows"), ("Grace", mark, "admires"), (mark, "Placeholder", "seeks"))
    async with agent.writing() as (tx, revision):
        told = NewRelation("Grace", "Bystander", "saw", metadata={"with": [mark]})
        await relations.create_relations(tx, revision, [told])
    await agent.unrelate((mark, "Grace", "knows"))
    await agent.merge([mark, f"{mark} the elder"])
    (fact,) = await agent.remember(NewMemory(f"the {SECRET} was picked", about=(mark,), thread="monday"))
    await agent.remember(NewMemory("a harmless neighbour", thread="monday"), NewMemory(f"{mark} left", thread="monday"))
    await agent.remember(NewMemory("said elsewhere", about=("Bystander",), thread=f"talk with {mark}"))
    (amended,) = await agent.remember(f"{mark} came back")
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(id=amended.id), MemoryPatch(text="somebody came back"))
        await revising.revise(tx, revision, MemoryRef(id=fact.id), MemoryPatch(text=f"the {SECRET} was eaten"))
    async with agent.writing() as (tx, revision):
        (head,) = (await _heads(agent, tx, revision.graph, ["Bystander"])).values()
        fields = replace(
            head.fields,
            summary=f"a friend of {mark}",
            tags=("kept", mark),
            metadata={"kept": 1, "friend": {"of": [mark]}, mark: True},
            source=f"{mark}'s diary",
        )
        await nodes.rewrite(tx, revision, [Rewrite(head, fields)])
        gone = NodeFields(name="Gone", content=f"{mark} was here", summary=mark, metadata={mark: mark})
        await lineages.put_node(tx, revision, Draft(gone))
    await agent.delete("Gone")
    async with agent.writing() as (tx, revision):
        (head,) = (await _heads(agent, tx, revision.graph, [mark])).values()
        await aliases.keep_name(tx, revision, head.id)
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name="Countess"))])
    await agent.observe("Countess", f"grows {SECRET}")
    await agent.remember("the Countess waved")
    await _job(agent, f"export of {mark} and {SECRET}".encode())
    await agent.embed()


async def _heads(agent: Agent, tx: Any, graph: Any, wanted: list[str]) -> Any:
    found = await naming.require_entities(tx, graph, wanted)
    return await nodes.read_heads(tx, graph, [found[name].id for name in wanted])


async def _job(agent: Agent, text: bytes) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.get_graph(tx, agent.graph or "default")
        job = await jobs.schedule(tx, NewJob("nobodys_kind", graph.id, is_held=True))
        await jobs.append_input(tx, job.id, [text], JobBounds.of(Settings()))


@pytest.mark.proves("security: erasure")
@pytest.mark.parametrize("at_once", [1, 5_000])
async def test_nothing_of_a_person_is_left_in_any_table(
    agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(erasure, "IDS_PER_STATEMENT", at_once)
    await write_everywhere(agent, MARK)
    before = await rows_with(owner, agent, MARK)
    assert before.keys() >= {
        "nodes", "node_versions", "observations", "relations", "aliases", "passages", "job_inputs", "terms",
    }  # fmt: skip
    receipt = await erase(agent, "countess")
    assert set(receipt.names) == {"countess", "Countess", MARK, f"{MARK} the elder"}
    assert receipt.kept == {}
    for word in (MARK, SECRET, "countess"):
        assert await rows_with(owner, agent, word) == {}, word
    await assert_laws(agent, whole=False)
    await agent.embed()
    for word in (MARK, SECRET):
        assert await rows_with(owner, agent, word) == {}, "the worker brings nothing back"
    left = await agent.read()
    assert names(left) == ["Grace", "Bystander"]
    assert [entity.observations for entity in left.entities] == [("writes programs",), ("was there",)]
    assert (left.entities[1].tags, left.relations) == (("kept",), [])
    assert await agent.recalled("harmless neighbour") == ["a harmless neighbour"]


@pytest.mark.parametrize("name", STORED, ids=range(len(STORED)))
async def test_no_form_of_a_name_is_left(agent: Agent, owner: asyncpg.Connection, name: str) -> None:
    said = STORED[name]
    for form in said:
        await agent.create(NewEntity(f"knows {said.index(form)}", "person", ("was there", form), tags=("kept", form)))
        await agent.remember(form, NewMemory("a harmless neighbour", thread=form))
        async with agent.writing() as (tx, revision):
            (head,) = (await _heads(agent, tx, revision.graph, [f"knows {said.index(form)}"])).values()
            fields = replace(head.fields, summary=form, metadata={"of": [form], form: 1, "kept": 1})
            await nodes.rewrite(tx, revision, [Rewrite(head, fields)])
            told = NewRelation("knows 0", f"knows {said.index(form)}", "saw", metadata={"with": form})
            await relations.create_relations(tx, revision, [told])
    await write_everywhere(agent, name)
    await agent.embed()
    receipt = await erase(agent, "Countess")
    assert (receipt.kept, name in receipt.names) == ({}, True)
    for word in (name, SECRET, *said):
        assert await rows_with(owner, agent, word) == {}, word
    left = await agent.read()
    assert names(left) == [*(f"knows {place}" for place in range(len(said))), "Grace", "Bystander"]
    assert [entity.tags for entity in left.entities[: len(said)]] == [("kept",)] * len(said)
    assert left.entities[0].observations == ("was there",)
    await assert_laws(agent, whole=False)


@pytest.mark.parametrize("name", STORED, ids=range(len(STORED)))
async def test_a_person_can_be_named_by_any_form_of_the_name(agent: Agent, name: str) -> None:
    """As dry runs, since each real erasure makes PostgreSQL analyse many tables."""
    forms = {name, name.upper(), name.lower(), *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))}
    await agent.create("Grace", name)
    for form in sorted(forms):
        async with agent.db.transaction(agent.caller, commit=False) as tx:
            receipt = await erasure.erase_person(tx, "default", form, dry_run=True)
            left = await tx.fetch(LIVE_NAMES)
        assert name in receipt.names
        assert [row["name"] for row in left] == ["Grace"]


async def test_readers_see_an_erasure_whole_or_not_at_all(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any number of statements: readers find everything before the commit, and nothing after it."""
    monkeypatch.setattr(erasure, "IDS_PER_STATEMENT", 1)
    async with agent.writing() as (tx, revision):
        made = [NewEntity(f"e{number}", "thing", ("likes tea",)) for number in range(9)]
        await entities.create_entities(tx, revision, made)
    async with agent.db.transaction(agent.caller) as tx:
        await erasure.erase_person(tx, "default", None, created_by=agent.caller.subject)
        assert (len(names(await agent.read())), len(await agent.recalled("likes tea"))) == (9, 9)
    assert (names(await agent.read()), await agent.recalled("likes tea")) == ([], [])


async def test_an_erasure_is_logged_by_ids(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes tea",)))
    receipt = await erase(agent, "Ada")
    assert receipt.revision == 2
    assert {table: count for table, count in receipt.erased.items() if count} == {
        "nodes": 1, "versions": 2, "observations": 1, "passages": 1,
    }  # fmt: skip
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        changes, _ = await graphs.recent_changes(tx, None, since=1, limit=9)
        (change,) = changes
        assert (change.operation, change.counts["nodes_erased"], change.actor) == ("erase", 1, agent.caller.subject)
        assert names(await reading.read_graph(await graphs.view(tx, None, "1"), max_items=9)) == []
    async with agent.db.transaction(agent.caller) as tx:
        undone = await undoing.undo_changes(tx, None, "undo", ChangeRange(0), dry_run=False)
    assert {skipped.reason for skipped in undone.skipped} == {"compacted"}
    assert await agent.create("Ada") == ["Ada"], "the name is free"


async def test_a_dry_run_reports_the_same_and_erases_nothing(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_everywhere(agent, MARK)
    before = await rows_with(owner, agent, MARK)
    async with agent.db.transaction(agent.caller, commit=False) as tx:
        told = await erasure.erase_person(tx, "default", "Countess")
    assert await rows_with(owner, agent, MARK) == before
    assert await erase(agent, "Countess") == told
    assert told.erased["observations"] > 3


async def test_everything_a_subject_created_is_erased(agent: Agent, owner: asyncpg.Connection) -> None:
    other = replace(agent, caller=replace(agent.caller, subject="key:other"))
    await agent.create("Ada")
    await agent.observe("Ada", "likes tea")
    await other.observe("Ada", "likes coffee", "likes milk")
    await other.unobserve(("Ada", "likes milk"))
    await other.create("Grace")
    await agent.observe("Grace", "writes")
    await other.remember("it rained")
    await agent.relate(("Ada", "Grace", "knows"))
    await other.relate(("Ada", "Ada", "is"))
    receipt = await erase(agent, None, "key:other")
    left = await agent.read()
    assert (names(left), left.relations) == (["Ada"], [])
    assert left.entities[0].observations == ("likes tea",)
    kept = await rows_with(owner, agent, "key:other")
    assert kept.keys() == {"changes"}, "who wrote what, by ids"
    assert receipt.kept == {}
    await assert_laws(agent, whole=False)


async def test_observations_of_a_subject_are_erased_even_if_others_reattached_them(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    other = replace(agent, caller=replace(agent.caller, subject="key:other"))
    await agent.create("Ship", "Raft")
    for name in ("Ship", "Raft"):
        await other.observe(name, f"{MARK} wrote of the {name}")
    for writer, name, text in ((agent, "Boat", "floats"), (other, "Ark", f"{MARK} wrote an ark")):
        async with writer.writing() as (tx, revision):
            await nodes.create_nodes(tx, revision, [NodeFields(name, "thing", content=text)])
    await agent.merge(["Boat", "Ship", "Ark"])
    since = (await agent.head()).revision
    await agent.delete("Raft")
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, None, "undo", ChangeRange(since), dry_run=False)
    said = {text for entity in (await agent.read()).entities for text in entity.observations}
    assert said == {f"{MARK} wrote {what}" for what in ("of the Ship", "of the Raft", "an ark")}
    receipt = await erase(agent, None, "key:other")
    assert await rows_with(owner, agent, MARK) == {}
    assert (sorted(names(await agent.read())), receipt.kept) == (["Boat", "Raft"], {})
    await assert_laws(agent, whole=False)


async def test_an_observation_revised_by_another_subject_is_that_subjects(agent: Agent) -> None:
    other = replace(agent, caller=replace(agent.caller, subject="key:other"))
    (said,) = await other.remember(NewMemory("floats", about=("Boat",)))
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(id=said.id), MemoryPatch(text="sank"))
    assert (await erase(agent, None, agent.caller.subject)).erased["observations"] == 1
    assert await agent.recalled("sank") == []


async def test_failed_jobs_are_erased_and_others_kept(agent: Agent, owner: asyncpg.Connection) -> None:
    """Older versions repeated content of an import file in the error, after the input had been deleted."""
    await agent.create(MARK, "Ada")
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.get_graph(tx, "default")
        failed, finished, waiting = [
            (await jobs.schedule(tx, NewJob("nobodys_kind", graph.id, {"number": number}))).id for number in range(3)
        ]
    end = "UPDATE jobs SET status = $3, error_message = $4, finished_at = now() WHERE tenant_id = $1 AND id = $2"
    await owner.execute(end, agent.caller.tenant_id, failed, "failed", f"line 1.{MARK}: Unknown column")
    await owner.execute(end, agent.caller.tenant_id, finished, "succeeded", None)
    receipt = await erase(agent, MARK)
    assert receipt.erased["jobs"] == 1
    left = await owner.fetch("SELECT id FROM jobs WHERE tenant_id = $1", agent.caller.tenant_id)
    assert {row["id"] for row in left} == {finished, waiting}
    assert await rows_with(owner, agent, MARK) == {}


async def test_an_unknown_subject_is_refused_and_changes_nothing(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("Ada")
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.get_graph(tx, "default")
        await jobs.schedule(tx, NewJob("count", graph.id))
    with pytest.raises(NotFound) as refused:
        await erase(agent, None, "key:typo")
    assert refused.value.path == "created_by"
    assert await owner.fetchval("SELECT count(*) FROM jobs WHERE tenant_id = $1", agent.caller.tenant_id) == 1


async def test_changes_of_a_subject_to_entities_of_others_are_reported(agent: Agent) -> None:
    other = replace(agent, caller=replace(agent.caller, subject="key:other"))
    await agent.create("Ada")
    async with other.writing() as (tx, revision):
        (head,) = (await _heads(other, tx, revision.graph, ["Ada"])).values()
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, importance=9.0))])
    assert (await erase(agent, None, "key:other")).kept == {"versions_by_subject": 1}


async def test_an_entity_whose_longer_name_contains_the_name_is_kept_and_reported(agent: Agent) -> None:
    await agent.create("Ada", NewEntity("Ada Memorial Library", "place", ("is quiet",)), "Adamant")
    receipt = await erase(agent, "Ada")
    assert names(await agent.read()) == ["Ada Memorial Library", "Adamant"]
    assert receipt.kept == {"versions": 1}


@pytest.mark.parametrize("archived", [False, True])
async def test_expired_nodes_of_others_no_longer_name_the_person(
    agent: Agent, owner: asyncpg.Connection, archived: bool
) -> None:
    """They are in the tables until they are purged, and as long as a relation ties them to live nodes."""
    await agent.create(MARK)
    async with agent.writing() as (tx, revision):
        ended = revision.at - timedelta(seconds=1)
        fields = NodeFields("Project", "project", f"led by {MARK}", metadata={"lead": MARK, "n": 1}, expires_at=ended)
        await nodes.create_nodes(tx, revision, [fields])
    if archived:
        async with agent.db.transaction(agent.caller) as tx:
            graph = await graphs.get_graph(tx, "default")
            assert (await expiry.archive_expired(tx, graph.id)).nodes == 1
    assert (await erase(agent, MARK)).kept == {}
    assert await rows_with(owner, agent, MARK) == {}
    await assert_laws(agent, whole=False)


async def test_another_entity_that_took_a_former_name_is_kept(agent: Agent) -> None:
    await agent.create("Ada", "Countess")
    await agent.merge(["Countess", "Ada"])
    await agent.create(NewEntity("Lovelace", "person"))
    async with agent.writing() as (tx, revision):
        (head,) = (await _heads(agent, tx, revision.graph, ["Lovelace"])).values()
        await aliases.keep_name(tx, revision, head.id)
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name="Grace"))])
    assert set((await erase(agent, "Countess")).names) == {"Ada", "Countess"}
    assert names(await agent.read()) == ["Grace"]


@pytest.mark.proves("security: erasure")
async def test_a_worker_that_was_embedding_restores_nothing(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("Grace")
    await agent.remember(NewMemory("a harmless neighbour", thread="monday"), NewMemory(f"{MARK} left", thread="monday"))
    await agent.create(NewEntity(MARK, "person", (f"likes {SECRET}",)))
    model = embedder().model
    async with agent.db.transaction(agent.caller) as tx:
        claimed = await passages.claim_pending(tx, model=model, limit=1_000, lease_seconds=60)
    made = await embedded_passages(claimed)
    await erase(agent, MARK)
    async with agent.db.transaction(agent.caller) as tx:
        assert await passages.settle(tx, claimed, model=model, **made) == 2
    await agent.embed()
    for word in (MARK, SECRET):
        assert await rows_with(owner, agent, word) == {}
    assert await agent.recalled("harmless neighbour") == ["a harmless neighbour"]


async def test_children_of_an_erased_entity_become_roots_as_after_a_deletion(agent: Agent) -> None:
    read = []
    for graph, goes in (("erased", erase), ("deleted", lambda agent, name: agent.delete(name))):
        one = replace(agent, graph=graph)
        await one.create("Ada", "Child")
        async with one.writing() as (tx, revision):
            await hierarchy.set_parent(tx, revision, "Child", "Ada")
        await goes(one, "Ada")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            roots = await hierarchy.get_roots(await graphs.view(tx, graph), PageRequest())
            faults = await validation.validate_graph(await graphs.view(tx, graph))
        read.append((names(await one.read()), str(roots).count("Child"), [fault.fault for fault in faults]))
    assert read[0] == read[1]


async def test_invalid_erasures_are_refused(agent: Agent) -> None:
    await agent.create("Ada")
    async with agent.db.transaction(agent.caller) as tx:
        with pytest.raises(InvalidInput):
            await erasure.erase_person(tx, "default", None)
    for graph, name in (("default", "Grace"), ("nowhere", "Ada")):
        with pytest.raises(NotFound):
            async with agent.db.transaction(agent.caller) as tx:
                await erasure.erase_person(tx, graph, name)


async def test_a_graph_is_erased_whole(agent: Agent, owner: asyncpg.Connection) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.create_graph(tx, NewGraph("diary", metadata={"of": MARK}))
    await write_everywhere(replace(agent, graph="diary"), MARK)
    async with agent.db.transaction(agent.caller) as tx:
        told = await erasure.erase_graph(tx, "diary", dry_run=True)
    assert (await rows_with(owner, agent, MARK)) != {}
    async with agent.db.transaction(agent.caller) as tx:
        receipt = await erasure.erase_graph(tx, "diary")
    assert receipt == told
    assert min(receipt.erased[table] for table in ("nodes", "vectors", "terms", "changes", "jobs", "graphs")) > 0
    for word in (MARK, SECRET):
        assert await rows_with(owner, agent, word) == {}
    # The log still says, by its id, that a graph was created and erased.
    assert await rows_with(owner, agent, str(graph.id)) == {"audit_log": 2}
    with pytest.raises(NotFound):
        async with agent.db.transaction(agent.caller) as tx:
            await erasure.erase_graph(tx, "diary")


async def test_equal_names_in_another_tenant_are_kept(
    agent: Agent, owner: asyncpg.Connection, db: Database, new_tenant: NewTenant
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as other:
        for one in (agent, other):
            await write_everywhere(one, MARK)
        before = await rows_with(owner, other, MARK), await rows_with(owner, other, SECRET), await other.read()
        await erase(agent, "Countess")
        async with agent.db.transaction(agent.caller) as tx:
            await erasure.erase_graph(tx, "default")
        assert (
            await rows_with(owner, other, MARK),
            await rows_with(owner, other, SECRET),
            await other.read(),
        ) == before


def test_names_are_matched_as_whole_words_and_removed_from_texts() -> None:
    pattern = re.compile(pattern_of(["Ada", "C++ (x)"]))
    fields = NodeFields(
        name="Ada", content="ADA's engine", summary="Adamant", source="of c++ (x)!", tags=("ada", "b"),
        metadata={"a": {"b": ["x", "Ada"]}, "n": 1, "c": "Adage"},
    )  # fmt: skip
    named = {text for text in texts_to_search(fields) if pattern.search(text)}
    assert redacted(fields, named) == NodeFields(
        name="Ada", summary="Adamant", tags=("b",), metadata={"n": 1, "c": "Adage"}
    )
    assert redacted(fields, set()) == fields


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("5551234", 5551234),
        ("5551234", -5551234),
        ("5551234", 5551234.0),
        ("10000000000000000000000", 1e22),
        ("0.0000001", 1e-7),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
async def test_a_name_that_is_a_number_is_removed_from_numbers(agent: Agent, name: str, number: float) -> None:
    metadata = {"phone": number, "phones": [{"home": number}], "other": 1234, "on": True}
    async with agent.writing() as (tx, revision):
        await nodes.create_nodes(tx, revision, [NodeFields(name, "person"), NodeFields("Shop", metadata=metadata)])
        wanted = [NewObservation("Shop", "is called", metadata={"by": number}), NewObservation("Shop", "opens")]
        await observations.add_observations(tx, revision, wanted)
    assert (await erase(agent, name)).kept == {}
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        shop = (await nodes.require_entity_heads(tx, graph, ["Shop"]))["Shop"]
        said = [o.content for o in await observations.list_observations(tx, [shop.id])]
    assert (shop.metadata, said) == ({"other": 1234, "on": True}, ["opens"])


@pytest.mark.parametrize(("bound", "inside"), [(0.5, "10min"), (3600.0, "1h")])
async def test_only_statements_of_an_erasure_have_a_longer_timeout(
    settings: Settings, caller: Caller, bound: float, inside: str
) -> None:
    narrow = settings.model_copy(update={"statement_timeout_seconds": bound, "database_pool_size": 1})
    async with Database.connect(settings.database_url, settings=narrow) as db, at_work(db, caller) as agent:
        await agent.create("Ada")
        async with db.transaction(caller) as tx:
            outside = await tx.fetchval(Query.compile("SHOW statement_timeout"))
            await erasure.erase_person(tx, "default", "Ada")
            assert await tx.fetchval(Query.compile("SHOW statement_timeout")) == inside
        async with db.transaction(caller) as tx:
            assert await tx.fetchval(Query.compile("SHOW statement_timeout")) == outside
            await graphs.create_graph(tx, NewGraph("diary"))
            await erasure.erase_graph(tx, "diary")
            assert await tx.fetchval(Query.compile("SHOW statement_timeout")) == inside
        async with db.transaction(caller) as tx:
            assert await tx.fetchval(Query.compile("SHOW statement_timeout")) == outside


async def test_a_concurrent_word_count_does_not_restore_erased_words(
    db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    async with at_work(db, caller) as agent:
        await agent.remember(*(f"{MARK} saw {SECRET} {number}" for number in range(20)))
        await agent.create(MARK)
        await agent.embed()
        await owner.execute("UPDATE graph_indexes SET memories_counted = 0 WHERE tenant_id = $1", caller.tenant_id)

        async def count() -> None:
            async with db.transaction(caller) as tx:
                await count_words(tx)

        async with db.transaction(caller) as tx:
            receipt = await erasure.erase_person(tx, "default", MARK)
            counting = asyncio.create_task(count())
            await counting  # It skips a graph that somebody else counts; otherwise, it would end with BUSY.
        left = await owner.fetch("SELECT lexeme FROM terms WHERE tenant_id = $1", caller.tenant_id)
        assert receipt.kept == {}
        assert {MARK, SECRET}.isdisjoint(row["lexeme"] for row in left)


@pytest.fixture
async def superuser(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's connection, since PostgreSQL shows statistics of all rows to no one else; with a large sample."""
    connection = await asyncpg.connect(postgres.url(), server_settings={"default_statistics_target": "10000"})
    yield connection
    await connection.close()


async def statistics_with(superuser: asyncpg.Connection, word: str) -> list[str]:
    """The tables and indexes whose statistics contain this word."""
    rows = await superuser.fetch(
        "SELECT DISTINCT starelid::regclass::text AS held FROM pg_statistic s WHERE s::text ILIKE $1 ORDER BY 1",
        f"%{word}%",
    )
    return [row["held"] for row in rows]


@pytest.mark.proves("security: erasure")
@pytest.mark.parametrize("whole", [False, True])
async def test_planner_statistics_contain_nothing_of_an_erased_person_or_graph(
    agent: Agent, superuser: asyncpg.Connection, whole: bool
) -> None:
    mark = f"qzx{uuid4().hex}"  # No other test wrote this word: statistics contain other tenants' rows, too.
    diary = replace(agent, graph="diary")
    await write_everywhere(diary, mark)
    many = [NewEntity(f"{mark} {n % 3}/{n}", f"{mark} kind", (f"{mark} says {n % 3}",)) for n in range(300)]
    await diary.create(*many)
    await superuser.execute("ANALYZE")
    held = await statistics_with(superuser, mark)
    assert {"recollect.nodes", "recollect.node_versions", "recollect.observations", "recollect.passages"} <= set(held)
    async with agent.db.transaction(agent.caller) as tx:
        if whole:
            receipt = await erasure.erase_graph(tx, "diary")
        else:
            receipt = await erasure.erase_person(tx, "diary", None, created_by=agent.caller.subject)
    assert receipt.statistics == ()
    assert receipt.remains.keys() == WHERE_COPIES_REMAIN.keys()
    assert await statistics_with(superuser, mark) == []


async def test_a_dry_run_does_not_analyse_tables(agent: Agent, superuser: asyncpg.Connection) -> None:
    await agent.create(NewEntity(MARK, "person", ("likes tea",)))
    asked = "SELECT max(last_analyze) FROM pg_stat_user_tables WHERE relname = 'nodes'"
    before = await superuser.fetchval(asked)
    async with agent.db.transaction(agent.caller, commit=False) as tx:
        await erasure.erase_person(tx, "default", MARK, dry_run=True)
    await superuser.execute("SELECT pg_stat_force_next_flush()")
    assert await superuser.fetchval(asked) == before


async def test_statistics_of_a_locked_table_are_reported_and_left_to_a_job(
    settings: Settings, agent: Agent, superuser: asyncpg.Connection
) -> None:
    diary = replace(agent, graph="diary")
    await diary.create(*(NewEntity(f"{n}", f"{MARK} kind") for n in range(100)))
    await superuser.execute("ANALYZE")
    async with employed(settings, agent.db) as worker:
        async with superuser.transaction():
            await superuser.execute("LOCK TABLE recollect.nodes IN SHARE UPDATE EXCLUSIVE MODE")
            async with agent.db.transaction(agent.caller) as tx:
                receipt = await erasure.erase_graph(tx, "diary")
            assert receipt.statistics == ("nodes",)
            assert receipt.remains["statistics"].startswith("of nodes: until the job forget_statistics has ended")
            await job_loop.sweep(worker)
            [job] = await statistics_jobs(agent)
            assert (job.is_finished, job.done, job.total, job.attempts) == (False, 0, 1, 0)
            assert await statistics_with(superuser, f"{MARK} kind") != []
        await superuser.execute("UPDATE recollect.jobs SET next_attempt_at = now() WHERE id = $1", job.id)
        await job_loop.sweep(worker)
    [job] = await statistics_jobs(agent)
    assert (job.status, job.done, job.total, job.result) == ("succeeded", 1, 1, {"left_out": []})
    assert await statistics_with(superuser, f"{MARK} kind") == []


async def statistics_jobs(agent: Agent) -> list[Job]:
    """The jobs that renew statistics."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await jobs.list_jobs(tx, JobFilter(kind="forget_statistics"))


async def test_statistics_of_a_table_that_is_now_empty_are_cleared(agent: Agent, superuser: asyncpg.Connection) -> None:
    """ANALYZE skips an empty table, and leaves its old statistics."""
    await agent.create("Ada", *(f"{MARK} {n}" for n in range(9)))
    await agent.merge(["Ada", *(f"{MARK} {n}" for n in range(9))])
    await superuser.execute("ANALYZE recollect.aliases")
    assert "recollect.aliases" in await statistics_with(superuser, MARK)
    transaction = superuser.transaction()
    await transaction.start()
    await superuser.execute("DELETE FROM recollect.aliases; ANALYZE recollect.aliases")
    assert "recollect.aliases" in await statistics_with(superuser, MARK)
    assert await superuser.fetchval("SELECT recollect.forget_statistics('{aliases}')") == []
    assert "recollect.aliases" not in await statistics_with(superuser, MARK)
    await transaction.rollback()


async def test_an_empty_table_without_statistics_is_not_reported(superuser: asyncpg.Connection) -> None:
    """A server before 18 cannot clear statistics, and need not if there are none."""
    transaction = superuser.transaction()
    await transaction.start()
    await superuser.execute(
        """DELETE FROM recollect.aliases;
        DELETE FROM pg_statistic WHERE starelid = 'recollect.aliases'::regclass
            OR starelid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'recollect.aliases'::regclass)"""
    )
    assert await superuser.fetchval("SELECT recollect.forget_statistics('{aliases}')") == []
    await transaction.rollback()
