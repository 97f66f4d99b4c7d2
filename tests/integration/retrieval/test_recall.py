"""Remember, recall and search_nodes: what is stored, what is found, and what is never returned."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import InvalidInput
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import indexing, naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.graph.passages.model import MAX_WORDS
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall import store
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.similarity import store as similarity_store
from tests.support.memories import Agent, count_words, embedded_questions

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
WEIRD = [
    *["", " ", "\t\n", "\u200b", "%", "_", "\\", "'", "''", '"', "!!!", "-1.5e10 & |", "(((", "<->", "a:*"],
    *[
        "the of and",
        "a & b | !c",
        "'a' & 'b'",
        "a\\'b",
        "it's",
        "C:\\dir\\f",
        "<b>bold</b> &amp;",
        "🦙🔥",
        "ÀÉ",
        "שלום",
    ],
    *["http://x.y/a b&c?d=e", "foo-bar/baz.com?x=1&y=2", "word " * 5_000, "x" * 100_000],
]
"""Texts that are difficult for parsers of full-text queries, for patterns and for vectors."""


async def expire(owner: asyncpg.Connection, agent: Agent, content: str) -> None:
    """Let a memory expire now."""
    for statement in (
        "UPDATE nodes SET expires_at = statement_timestamp() WHERE tenant_id = $1 AND content = $2",
        "UPDATE observations SET expires_at = statement_timestamp() WHERE tenant_id = $1 AND content = $2",
        "UPDATE passages SET expires_at = statement_timestamp() WHERE tenant_id = $1 AND text = $2",
    ):
        await owner.execute(statement, agent.caller.tenant_id, content)


async def rename(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        node = (await naming.require_entities(tx, revision.graph, ["Boat"]))["Boat"]
        head = (await nodes.read_heads(tx, revision.graph, [node.id]))[node.id]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name="Ship"))])


async def revise(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(name="Boat"), MemoryPatch(text="it floats"))


async def merge(agent: Agent) -> None:
    await agent.create("Ship")
    await agent.merge(["Ship", "Boat"])


async def delete_and_undo(agent: Agent) -> None:
    since = (await agent.head()).revision
    await agent.delete("Boat")
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, None, "undo", ChangeRange(since), dry_run=False)


async def rebuild_passages(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        revision = await graphs.lock_graph_by_id(tx, (await graphs.get_graph(tx, "default")).id)
        await indexing.reindex_page(tx, revision, after=UUID(int=0), limit=10)


# Remember


@pytest.mark.proves("agent: remember", "agent-toolset: no-duplicates")
async def test_a_memory_that_exists_already_is_known(agent: Agent) -> None:
    items = [NewMemory("the engine was never built"), NewMemory("likes tea", about=("Ada",))]
    first, second = await agent.remember(*items), await agent.remember(*items)
    assert [one.known for one in first] == [False, False]
    assert [one.known for one in second] == [True, True]
    assert [one.id for one in second] == [one.id for one in first]
    assert first[0].node_id == first[0].id
    assert first[1].node_id == (await agent.open("Ada")).entities[0].id


@pytest.mark.proves("agent-toolset: threads-are-separate")
async def test_each_thread_has_its_own_memories(agent: Agent) -> None:
    threads = (None, "monday", "tuesday")
    facts = await agent.remember(*(NewMemory("it rained", thread=thread) for thread in threads))
    statements = await agent.remember(*(NewMemory("likes tea", about=("Ada",), thread=thread) for thread in threads))
    for remembered in (facts, statements):
        assert [one.known for one in remembered] == [False] * 3
        assert len({one.id for one in remembered}) == 3
    again = await agent.remember(
        NewMemory("it rained", thread="monday"), NewMemory("likes tea", about=("Ada",), thread="monday")
    )
    assert [(one.known, one.id) for one in again] == [(True, facts[1].id), (True, statements[1].id)]


async def test_a_duplicate_in_a_batch_is_one_memory(agent: Agent) -> None:
    fact, told, of_both = (
        NewMemory("it rained"),
        NewMemory("likes tea", about=("Ada",)),
        NewMemory("likes tea", about=("Grace", "Ada")),
    )
    remembered = await agent.remember(fact, told, fact, told, of_both, NewMemory("likes tea", about=("Grace",)))
    assert [one.known for one in remembered] == [False, False, True, True, False, True]
    assert remembered[0].id == remembered[2].id
    assert remembered[1].id == remembered[3].id
    assert remembered[4].id == remembered[5].id
    head = await agent.head()
    assert (head.facts, head.observations, head.entities) == (1, 2, 2)


async def test_a_memory_about_several_entities_is_stored_for_each(agent: Agent) -> None:
    (remembered,) = await agent.remember(NewMemory("met in London", about=("Ada", "Babbage", "Ada"), kind="person"))
    opened = (await agent.open("Ada", "Babbage")).entities
    assert [(entity.kind, entity.observations) for entity in opened] == [("person", ("met in London",))] * 2
    assert remembered.node_id == opened[0].id
    await agent.embed()
    assert await agent.recalled("met in London") == ["met in London"] * 2


@pytest.mark.proves("agent-toolset: similar-memories-come-back")
async def test_near_duplicates_are_reported(agent: Agent) -> None:
    await agent.remember("Ada prefers strong black tea", NewMemory("prefers strong black tea", about=("Grace",)))
    await agent.embed()
    fact, observation, unlike = await agent.remember(
        "Ada prefers very strong black tea",
        NewMemory("prefers very strong black tea", about=("Grace",)),
        "the engine was never built",
    )
    assert [close.text for close in fact.close][:1] == ["Ada prefers strong black tea"]
    assert [close.text for close in observation.close] == ["prefers strong black tea"]
    assert all(0.75 <= close.score <= 1 for close in fact.close)
    assert unlike.close == []


async def test_near_duplicates_are_found_by_rare_words_and_among_the_entitys_memories(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similarity_store, "MAX_COMPARED_WITH_NEW", 1)
    of_grace = NewMemory("prefers strong black tea", about=("Grace",))
    others = ("the boat sails at dawn", "the engine was never built", "it rained in London")
    await agent.remember("Ada prefers strong black tea", of_grace, *others)
    await agent.embed()
    common, rare, observation = await agent.remember(
        "strong black tea",
        "Ada prefers very strong black tea",
        NewMemory("prefers very strong black tea", about=("Grace",)),
    )
    assert common.close == []
    assert [close.text for close in rare.close] == ["Ada prefers strong black tea"]
    assert [close.text for close in observation.close] == [of_grace.text]


async def test_near_duplicates_exclude_archived_and_expired_memories(agent: Agent, owner: asyncpg.Connection) -> None:
    said = ("is archived", "has expired", "is outdated", "expires tomorrow", "stays")
    first = await agent.remember(*(f"the harbour crane lifts timber, which {what}" for what in said))
    await agent.embed()
    archived, expired, outdated, later, _ = (one.node_id for one in first)
    await owner.execute("UPDATE nodes SET status = 'archived' WHERE id = $1", archived)
    await owner.execute("UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE id = $1", expired)
    await owner.execute("UPDATE nodes SET status = 'outdated' WHERE id = $1", outdated)
    await owner.execute("UPDATE nodes SET expires_at = now() + interval '1 day' WHERE id = $1", later)
    for most in (50, 3):  # With 3, no more are looked at than are returned, after exclusions.
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(similarity_store, "APPROXIMATE_CANDIDATES", most)
            (new,) = await agent.remember(f"the harbour crane lifts timber, which is new {most}")
        assert {close.memory_id for close in new.close} == {one.id for one in first[2:]}


async def test_an_expired_memory_is_new_again(agent: Agent, owner: asyncpg.Connection) -> None:
    items = [NewMemory("it rained", ttl_days=1), NewMemory("likes tea", about=("Ada",), ttl_days=1)]
    first = await agent.remember(*items)
    for item in items:
        await expire(owner, agent, item.text)
    second = await agent.remember(*items)
    assert [one.known for one in second] == [False, False]
    assert {one.id for one in first}.isdisjoint(one.id for one in second)
    assert [one.id for one in await agent.remember(*items)] == [one.id for one in second]
    assert (await agent.open("Ada")).entities[0].observations == ("likes tea",)


async def test_a_memory_may_expire_immediately(agent: Agent) -> None:
    moment = 1e-13  # days: less than a microsecond
    for brief in (NewMemory("it rained", ttl_days=moment), NewMemory("likes tea", about=("Ada",), ttl_days=moment)):
        with pytest.raises(InvalidInput, match="at least 1 second") as error:
            await agent.remember("bees make honey", brief)
        assert error.value.path == "items.1.ttl_days"
    assert await agent.recalled("it rained", "tea", "honey") == []


# Recall


async def test_memories_that_share_a_passage_come_each_where_they_differ_elsewhere(agent: Agent) -> None:
    shared = " ".join(f"platypus{n}" for n in range(MAX_WORDS))
    both = [f"{shared} {end}" for end in ("lives in Sydney", "moved to Hobart")]
    long = await agent.remember(*(NewMemory(text, about=("Ada",)) for text in both))
    await agent.remember(NewMemory("Likes tea.", about=("Ada",)))
    await agent.remember(NewMemory("likes tea", about=("Ada",), thread="another"))
    found = (await agent.recall("Who saw platypus7?")).hits
    assert [hit.text for hit in found] == [shared, shared]
    assert {hit.memory_id for hit in found} == {one.id for one in long}
    assert len(await agent.recalled("Who likes tea?")) == 1


@pytest.mark.proves("agent: recall", "agent-toolset: meaning-and-words")
async def test_recall_finds_by_meaning_without_a_common_word(agent: Agent) -> None:
    await agent.remember(
        "The kitten is sleeping on the sofa",
        "Quarterly revenue exceeded the forecast",
        NewMemory("repairs bicycles for a living", about=("Grace",)),
    )
    for question in ("Where does the cat nap?", "Were sales better than predicted?"):
        assert await agent.recalled(question) == []
    await agent.embed()
    assert (await agent.recalled("Where does the cat nap?"))[0] == "The kitten is sleeping on the sofa"
    assert (await agent.recalled("Were sales better than predicted?"))[0] == "Quarterly revenue exceeded the forecast"


@pytest.mark.proves("agent-toolset: meaning-and-words")
async def test_recall_finds_by_words_at_once_and_without_an_embedder(agent: Agent, db: Database) -> None:
    await agent.remember("The engines were never built", NewMemory("likes tea", about=("Ada",)))
    assert await agent.recalled("building an engine") == ["The engines were never built"]
    assert await agent.recalled("What does Ada like?") == ["likes tea"]
    await agent.embed()
    async with db.transaction(agent.caller, read_only=True) as tx:
        unasked = [Question("engine", None, "a model that is away")]
        found = await recall.recall(await graphs.view(tx, None), unasked, RecallFilter(), limit=10, token_budget=1_000)
    assert [(hit.text, hit.meaning) for hit in found.hits] == [("The engines were never built", 0.0)]


@pytest.mark.proves("agent-toolset: pending-vectors-are-counted")
async def test_passages_that_wait_for_a_vector_are_counted(agent: Agent) -> None:
    await agent.remember("it rained", NewMemory("likes tea", about=("Ada",)))
    assert (await agent.recall("rain")).waiting == 2
    assert await agent.embed() == 2
    assert (await agent.recall("rain")).waiting == 0
    assert await agent.embed() == 0


async def test_an_entity_without_observations_is_recalled_by_its_name(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("Ferdinand the platypus")
    assert await agent.recalled("platypus") == ["Ferdinand the platypus"]
    await agent.remember(NewMemory("lays eggs", about=("Ferdinand the platypus",), ttl_days=1))
    assert await agent.recalled("platypus") == ["lays eggs"]
    await expire(owner, agent, "lays eggs")
    assert await agent.recalled("platypus") == ["Ferdinand the platypus"]


async def test_a_long_memory_is_returned_as_its_best_passage(agent: Agent) -> None:
    filler = " ".join(f"Clause {n} binds the parties to nothing in particular." for n in range(60))
    (remembered,) = await agent.remember(f"{filler} The platypus is called Ferdinand. {filler}")
    (hit,) = (await agent.recall("platypus Ferdinand")).hits
    assert hit.memory_id == remembered.id
    assert "The platypus is called Ferdinand." in hit.text
    assert len(hit.text.split()) <= 80


@pytest.mark.proves("agent-toolset: several-phrasings")
async def test_several_questions_get_one_fused_answer(agent: Agent) -> None:
    await agent.remember("tea is served at four", "the engine was never built", "tea fuels the engine")
    best, *others = await agent.recalled("tea", "engine")
    assert best == "tea fuels the engine"
    assert sorted(others) == ["tea is served at four", "the engine was never built"]


@pytest.mark.parametrize("change", [rename, revise, merge, delete_and_undo, rebuild_passages])
async def test_authorship_of_an_observation_survives_changes_of_its_entity(
    agent: Agent, change: Callable[[Agent], Awaitable[None]]
) -> None:
    ada, bob = (replace(agent, caller=replace(agent.caller, subject=f"key:{name}")) for name in ("ada", "bob"))
    await bob.create("Boat")
    await ada.observe("Boat", "was bought in May")
    await change(bob)
    (question,) = await embedded_questions("What have I bought?")
    credited = {}
    for asker in ("key:ada", "key:bob"):
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            asking = [replace(question, asker=asker)]
            found = await recall.recall(
                await graphs.view(tx, None), asking, RecallFilter(), limit=10, token_budget=1500
            )
        credited[asker] = [hit.terms["about"] > 0 for hit in found.hits if hit.text == "was bought in May"]
    assert credited == {"key:ada": [True], "key:bob": [False]}


@pytest.mark.proves("agent-toolset: limit-and-budget")
async def test_limit_and_token_budget_apply_to_the_answer(agent: Agent) -> None:
    await agent.remember(*(f"tea number {n}" for n in range(9)))
    few, frugal, all_ = (
        await agent.recall("tea", limit=3),
        await agent.recall("tea", token_budget=1),
        await agent.recall("tea", limit=100),
    )
    assert [(len(found.hits), found.more) for found in (few, frugal, all_)] == [(3, True), (1, True), (9, False)]


@pytest.mark.proves("agent-toolset: expired-never-returns")
@pytest.mark.parametrize("content", ["it rained in London", "likes rain"])
async def test_an_expired_memory_is_never_returned(agent: Agent, owner: asyncpg.Connection, content: str) -> None:
    await agent.remember(
        NewMemory("it rained in London", ttl_days=1), NewMemory("likes rain", about=("Ada",), ttl_days=1)
    )
    await agent.embed()
    assert content in await agent.recalled("rain")
    await expire(owner, agent, content)
    assert content not in await agent.recalled("rain")
    assert content not in await agent.recalled("precipitation in the capital", "fond of showers")
    opened = [*(await agent.open("Ada")).entities, *(await agent.read()).entities]
    assert content not in [observation for entity in opened for observation in entity.observations]
    assert await agent.found(content) == []
    (again,) = await agent.remember("rain is what Ada likes in London")
    assert content not in [close.text for close in again.close]


async def test_an_expired_entity_is_not_found(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    await agent.embed()
    await owner.execute(
        "UPDATE nodes SET expires_at = statement_timestamp() WHERE tenant_id = $1", agent.caller.tenant_id
    )
    assert (await agent.open("Ada")).entities == (await agent.read()).entities == []
    assert await agent.found("Ada") == await agent.found("programs") == await agent.recalled("Ada programs") == []


@pytest.mark.proves("agent-toolset: filters-before-ranking")
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({}, ["old", "new", "of Ada", "outside"]),
        ({"kinds": ("note",)}, ["old", "new"]),
        ({"kinds": ("note", "person")}, ["old", "new", "of Ada"]),
        ({"tags": ("DRINK",)}, ["old"]),
        ({"tags": ("éclair", "ΟΔΟΣ")}, ["new", "of Ada"]),
        ({"tags": ("İstanbul",)}, ["outside"]),
        ({"tags": ("drin",)}, []),
        ({"about": ("Ada",)}, ["of Ada"]),
        ({"about": ("ada", "Grace")}, []),
        ({"min_importance": 5.0}, ["new"]),
        ({"since": MONDAY}, ["new", "of Ada", "outside"]),
        ({"until": MONDAY}, ["old", "new"]),
        ({"since": MONDAY, "until": MONDAY}, ["new"]),
        ({"kinds": ("note",), "tags": ("drink",), "until": MONDAY}, ["old"]),
    ],
    ids=repr,
)
async def test_filters_select_memories(agent: Agent, only: dict[str, object], expected: list[str]) -> None:
    await agent.remember(
        NewMemory("tea: old", kind="note", tags=("Drink", "food"), importance=1, at=MONDAY - timedelta(days=1)),
        NewMemory("tea: new", kind="note", tags=("ÉCLAIR",), importance=5, at=MONDAY),
        NewMemory("tea: of Ada", about=("Ada",), kind="person", tags=("ΟΔΟΣ",)),
        NewMemory("tea: outside", tags=("İstanbul",)),
    )
    await agent.embed()
    assert sorted(await agent.recalled("tea", **only)) == sorted(f"tea: {text}" for text in expected)


@pytest.mark.proves("agent-toolset: outdated-and-stale-on-request")
async def test_outdated_memories_are_returned_on_request_and_stale_ones_by_default(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    await agent.remember("tea: outdated", "tea: archived", "tea: stale", "tea: good")
    states = (
        "UPDATE nodes SET status = substring(content FROM 6) WHERE tenant_id = $1 AND content ~ 'outdated|archived'"
    )
    stale = "UPDATE nodes SET freshness_at = statement_timestamp() WHERE tenant_id = $1 AND content = 'tea: stale'"
    for statement in (states, stale):
        await owner.execute(statement, agent.caller.tenant_id)
    assert sorted(await agent.recalled("tea")) == ["tea: good", "tea: stale"]
    assert await agent.recalled("tea", fresh_only=True) == ["tea: good"]
    assert sorted(await agent.recalled("tea", include_outdated=True)) == ["tea: good", "tea: outdated", "tea: stale"]


@pytest.mark.parametrize("text", WEIRD, ids=lambda text: repr(text[:16]))
async def test_any_text_can_be_remembered_and_searched(agent: Agent, text: str) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    await agent.remember("the engine was never built")
    await agent.embed()
    for hit in (await agent.recall(text)).hits:
        assert 0 <= hit.score <= 1
        assert hit.terms["coverage"] > 0 or 0.25 <= hit.meaning <= 1
    await agent.found(text)
    first, second = await agent.remember(text, text)
    assert (first.known, second.known, first.id) == (False, True, second.id)
    await agent.remember(NewMemory(text, about=("Ada",)))
    await agent.embed()
    assert text in (await agent.open("Ada")).entities[0].observations
    assert await agent.found(text) == ["Ada"]


async def test_a_turn_is_found_by_the_words_around_it_in_its_thread(agent: Agent) -> None:
    said = ["Which instrument did you get?", "A red cello.", "How was the weather?", "Grey all day."]
    turns = [NewMemory(text, thread="monday", at=MONDAY + timedelta(minutes=n)) for n, text in enumerate(said)]
    elsewhere = replace(agent, graph="elsewhere")
    await elsewhere.remember(*(replace(turn, text=turn.text.replace("instrument", "zeppelin")) for turn in turns))
    await agent.remember(*reversed(turns), NewMemory("Seven of them.", thread="tuesday", at=MONDAY))
    await agent.embed()
    assert "A red cello." in (await agent.recalled("instrument"))[:2]
    assert "Seven of them." not in await agent.recalled("instrument")
    assert await agent.recalled("zeppelin") == []
    assert "A red cello." in await elsewhere.recalled("zeppelin")


async def test_a_deleted_turn_no_longer_makes_its_neighbours_found(agent: Agent) -> None:
    turns = [
        NewMemory(text, thread="monday", at=MONDAY) for text in ("A red cello.", "Which zeppelin?", "Grey all day.")
    ]
    remembered = await agent.remember(*turns)
    await agent.embed()
    assert len(await agent.recalled("zeppelin")) == 3
    async with agent.writing() as (tx, revision):
        await revising.forget(tx, revision, [MemoryRef(id=remembered[1].id)], delete=True)
    await agent.embed()
    assert await agent.recalled("zeppelin") == []


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
async def test_a_blank_question_has_no_answer(agent: Agent, text: str) -> None:
    """Its vector has no direction, so that its cosine with any other is not a number."""
    await agent.remember("it rained")
    await agent.embed()
    assert await agent.recalled(text) == []


@pytest.mark.parametrize("asked_with", [{"model": "another"}, {"vector": None}])
async def test_common_words_find_memories_if_no_vector_can(
    agent: Agent, asked_with: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_MATCHED", 20)
    await agent.remember(*(f"The boat sails, entry {number}" for number in range(30)))
    await agent.embed()
    questions = [replace(question, **asked_with) for question in await embedded_questions("Where is the boat?")]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await recall.recall(await graphs.view(tx, None), questions, RecallFilter(), limit=10, token_budget=1500)
    assert len(found.hits) == 10


async def test_a_long_near_duplicate_is_reported_once_beside_others(agent: Agent) -> None:
    said = " ".join(["the harbour master counts every boat that comes in before the storm and writes it down"] * 4)
    long = " ".join(f"{said} number {number}." for number in range(5))
    others = [f"{said}, as {who} told us long ago in a garden." for who in ("Ada", "Bob")]
    remembered = await agent.remember(long, *others)
    await agent.embed()
    (new,) = await agent.remember(f"{said} number 7.")
    assert {close.memory_id for close in new.close} == {item.id for item in remembered}
    assert [close.score for close in new.close] == sorted((close.score for close in new.close), reverse=True)


async def test_common_words_find_memories_without_vectors(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_MATCHED", 20)
    await agent.remember(*(f"The boat sails, entry {number}" for number in range(30)))
    async with agent.db.transaction(agent.caller) as tx:
        await count_words(tx)
    assert await agent.recalled("Where is the boat?")


async def test_the_nul_character_is_refused(agent: Agent) -> None:
    """PostgreSQL can store any character but this one."""
    for call in (agent.remember, agent.recall, agent.found, agent.create):
        with pytest.raises(InvalidInput, match=r"U\+0000"):
            await call("a\x00b")


# search_nodes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100%", ['100%_\\ "it\'s"']),
        ("%", ['100%_\\ "it\'s"']),
        ("_", ['100%_\\ "it\'s"']),
        ("\\", ['100%_\\ "it\'s"']),
        ("%_\\", ['100%_\\ "it\'s"']),
        ("'", ['100%_\\ "it\'s"']),
        ('"', ['100%_\\ "it\'s"']),
        ("ÉLAN", ["Élan Ωmega"]),
        ("élan ωMEGA", ["Élan Ωmega"]),
        ("é", ["Élan Ωmega"]),
        ("京", ["東京"]),
        ("東京", ["東京"]),
        ("ПРИВ", ["東京"]),
        ("person", ["Ada", "Élan Ωmega"]),
        ("a", ["Ada", "Élan Ωmega", "東京"]),
        ("ada", ["Ada"]),
        ("likes tea", ["Ada"]),
        ("s tea, b", ["Ada"]),
        ("%likes%", []),
        ("L_KES", []),
        ("nothing of the kind", []),
        ("", ["Ada", "Élan Ωmega", '100%_\\ "it\'s"', "東京"]),
    ],
)
async def test_a_substring_of_any_characters_is_found(agent: Agent, text: str, expected: list[str]) -> None:
    await agent.create(
        NewEntity("Ada", "Person", ("likes tea, but not coffee",)),
        NewEntity("Élan Ωmega", "person"),
        NewEntity('100%_\\ "it\'s"', "odd"),
        NewEntity("東京", "city", ("привет!", "a b")),
    )
    assert sorted(await agent.found(text)) == sorted(expected)


@pytest.mark.proves("crate: search-nodes")
async def test_results_are_ordered_by_exact_name_name_kind_and_observation(agent: Agent) -> None:
    await agent.create(
        NewEntity("D", "thing", ("has a cat",)), NewEntity("C", "cat"), NewEntity("Catherine"), NewEntity("CAT")
    )
    assert await agent.found("cat") == ["CAT", "Catherine", "C", "D"]
    assert [await agent.found("cat", limit=2, offset=offset) for offset in (0, 2, 4)] == [
        ["CAT", "Catherine"],
        ["C", "D"],
        [],
    ]


async def test_a_substring_may_cross_the_edge_of_a_passage(agent: Agent) -> None:
    words = [f"word{n}" for n in range(200)]
    await agent.create(NewEntity("Ada", "person", (" ".join(words),)))
    assert await agent.found(" ".join(words[75:85])) == ["Ada"]


@pytest.mark.proves("crate: search-nodes", "enhanced-server: search-by-tags-and-importance")
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"kind": "tool"}, ["teapot"]),
        ({"kind": "Tool"}, []),
        ({"tags": ("KITCHEN",)}, ["teapot"]),
        ({"tags": ("ΟΔΟΣ", "kitchen")}, ["teapot", "tearoom"]),
        ({"min_importance": 3.0}, ["tearoom"]),
        ({"max_importance": 3.0}, ["teapot"]),
        ({"min_importance": 2.0, "max_importance": 7.0}, ["teapot", "tearoom"]),
    ],
    ids=repr,
)
async def test_search_nodes_filters_by_kind_tags_and_importance(
    agent: Agent, only: dict[str, object], expected: list[str]
) -> None:
    await agent.create(
        NewEntity("teapot", "tool", tags=("Kitchen",), importance=2),
        NewEntity("tearoom", "place", tags=("ΟΔΟΣ",), importance=7),
        NewEntity("tea"),
    )
    assert await agent.found("tea", **only) == expected
