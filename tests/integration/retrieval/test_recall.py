"""Remember, recall and search_nodes: what is kept, what is found, and what never comes back."""

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
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, NewMemory, Target
from recollect.platform.db import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall import store
from recollect.retrieval.recall.model import Question, RecallFilter
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
"""Texts that are hard on parsers of full-text queries, patterns and vectors."""


async def expire(owner: asyncpg.Connection, agent: Agent, content: str) -> None:
    """Let the time run out of a memory, this very moment."""
    for statement in (
        "UPDATE nodes SET expires_at = statement_timestamp() WHERE tenant_id = $1 AND content = $2",
        "UPDATE observations SET expires_at = statement_timestamp() WHERE tenant_id = $1 AND content = $2",
        "UPDATE passages SET expires_at = statement_timestamp() WHERE tenant_id = $1 AND text = $2",
    ):
        await owner.execute(statement, agent.caller.tenant_id, content)


async def rename(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        node = (await nodes.require_entities(tx, revision.graph, ["Boat"]))["Boat"]
        head = (await nodes.read_heads(tx, revision.graph, [node.id]))[node.id]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name="Ship"))])


async def revise(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, Target(name="Boat"), MemoryPatch(text="it floats"))


async def merge(agent: Agent) -> None:
    await agent.create("Ship")
    await agent.merge(["Ship", "Boat"])


async def bring_back(agent: Agent) -> None:
    since = (await agent.head()).revision
    await agent.delete("Boat")
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, None, "undo", ChangeRange(since), dry_run=False)


async def make_anew(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        revision = await graphs.hold_graph(tx, (await graphs.get_graph(tx, "default")).id)
        await nodes.reindex_page(tx, revision, after=UUID(int=0), limit=10)


# Remember


async def test_what_was_remembered_before_is_known(agent: Agent) -> None:
    items = [NewMemory("the engine was never built"), NewMemory("likes tea", about=("Ada",))]
    first, second = await agent.remember(*items), await agent.remember(*items)
    assert [one.known for one in first] == [False, False]
    assert [one.known for one in second] == [True, True]
    assert [one.id for one in second] == [one.id for one in first]
    assert first[0].node_id == first[0].id
    assert first[1].node_id == (await agent.open("Ada")).entities[0].id


async def test_a_thread_remembers_for_itself(agent: Agent) -> None:
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


async def test_the_same_thing_twice_in_a_batch_is_one_memory(agent: Agent) -> None:
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


async def test_a_memory_about_several_is_told_of_each(agent: Agent) -> None:
    (remembered,) = await agent.remember(NewMemory("met in London", about=("Ada", "Babbage", "Ada"), kind="person"))
    opened = (await agent.open("Ada", "Babbage")).entities
    assert [(entity.kind, entity.observations) for entity in opened] == [("person", ("met in London",))] * 2
    assert remembered.node_id == opened[0].id
    await agent.embed()
    assert await agent.recalled("met in London") == ["met in London"] * 2


async def test_what_is_close_is_told(agent: Agent) -> None:
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


async def test_what_is_close_is_sought_by_rare_words_and_among_what_is_known_of_the_entity(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_COMPARED_WITH_NEW", 1)
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


async def test_what_is_archived_or_expired_is_not_told_as_close_and_what_is_outdated_or_expires_later_is(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    said = ("is archived", "has expired", "is outdated", "expires tomorrow", "stays")
    first = await agent.remember(*(f"the harbour crane lifts timber, which {what}" for what in said))
    await agent.embed()
    archived, expired, outdated, later, _ = (one.node_id for one in first)
    await owner.execute("UPDATE nodes SET status = 'archived' WHERE id = $1", archived)
    await owner.execute("UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE id = $1", expired)
    await owner.execute("UPDATE nodes SET status = 'outdated' WHERE id = $1", outdated)
    await owner.execute("UPDATE nodes SET expires_at = now() + interval '1 day' WHERE id = $1", later)
    for most in (50, 3):  # The second: no more are looked at than are told, after what is left out.
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store, "APPROXIMATE_CANDIDATES", most)
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


async def test_a_memory_may_end_as_it_begins(agent: Agent) -> None:
    moment = 1e-13  # days: less than a microsecond
    remembered = await agent.remember(
        NewMemory("it rained", ttl_days=moment), NewMemory("likes tea", about=("Ada",), ttl_days=moment)
    )
    assert [one.known for one in remembered] == [False, False]
    assert await agent.recalled("it rained", "tea") == []


# Recall


async def test_meaning_is_found_without_a_shared_word(agent: Agent) -> None:
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


async def test_words_are_found_at_once_and_while_the_embedder_is_away(agent: Agent, db: Database) -> None:
    await agent.remember("The engines were never built", NewMemory("likes tea", about=("Ada",)))
    assert await agent.recalled("building an engine") == ["The engines were never built"]
    assert await agent.recalled("What does Ada like?") == ["likes tea"]
    await agent.embed()
    async with db.transaction(agent.caller, read_only=True) as tx:
        unasked = [Question("engine", None, "a model that is away")]
        found = await recall.recall(await graphs.view(tx, None), unasked, RecallFilter(), limit=10, token_budget=1_000)
    assert [(hit.text, hit.meaning) for hit in found.hits] == [("The engines were never built", 0.0)]


async def test_what_waits_for_its_vector_is_counted(agent: Agent) -> None:
    await agent.remember("it rained", NewMemory("likes tea", about=("Ada",)))
    assert (await agent.recall("rain")).waiting == 2
    assert await agent.embed() == 2
    assert (await agent.recall("rain")).waiting == 0
    assert await agent.embed() == 0


async def test_a_name_answers_where_there_is_nothing_else_to_say(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("Ferdinand the platypus")
    assert await agent.recalled("platypus") == ["Ferdinand the platypus"]
    await agent.remember(NewMemory("lays eggs", about=("Ferdinand the platypus",), ttl_days=1))
    assert await agent.recalled("platypus") == ["lays eggs"]
    await expire(owner, agent, "lays eggs")
    assert await agent.recalled("platypus") == ["Ferdinand the platypus"]


async def test_the_best_passage_of_a_long_memory_answers_for_it(agent: Agent) -> None:
    filler = " ".join(f"Clause {n} binds the parties to nothing in particular." for n in range(60))
    (remembered,) = await agent.remember(f"{filler} The platypus is called Ferdinand. {filler}")
    (hit,) = (await agent.recall("platypus Ferdinand")).hits
    assert hit.memory_id == remembered.id
    assert "The platypus is called Ferdinand." in hit.text
    assert len(hit.text.split()) <= 80


async def test_several_questions_are_answered_as_one(agent: Agent) -> None:
    await agent.remember("tea is served at four", "the engine was never built", "tea fuels the engine")
    best, *others = await agent.recalled("tea", "engine")
    assert best == "tea fuels the engine"
    assert sorted(others) == ["tea is served at four", "the engine was never built"]


@pytest.mark.parametrize("change", [rename, revise, merge, bring_back, make_anew])
async def test_what_one_said_is_ones_own_whoever_changes_what_it_is_about(
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


async def test_limit_and_budget_bound_the_answer(agent: Agent) -> None:
    await agent.remember(*(f"tea number {n}" for n in range(9)))
    few, frugal, all_ = (
        await agent.recall("tea", limit=3),
        await agent.recall("tea", token_budget=1),
        await agent.recall("tea", limit=100),
    )
    assert [(len(found.hits), found.more) for found in (few, frugal, all_)] == [(3, True), (1, True), (9, False)]


@pytest.mark.parametrize("content", ["it rained in London", "likes rain"])
async def test_what_expired_never_comes_back(agent: Agent, owner: asyncpg.Connection, content: str) -> None:
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


async def test_an_expired_entity_is_found_nowhere(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    await agent.embed()
    await owner.execute(
        "UPDATE nodes SET expires_at = statement_timestamp() WHERE tenant_id = $1", agent.caller.tenant_id
    )
    assert (await agent.open("Ada")).entities == (await agent.read()).entities == []
    assert await agent.found("Ada") == await agent.found("programs") == await agent.recalled("Ada programs") == []


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
async def test_filters_apply(agent: Agent, only: dict[str, object], expected: list[str]) -> None:
    await agent.remember(
        NewMemory("tea: old", kind="note", tags=("Drink", "food"), importance=1, at=MONDAY - timedelta(days=1)),
        NewMemory("tea: new", kind="note", tags=("ÉCLAIR",), importance=5, at=MONDAY),
        NewMemory("tea: of Ada", about=("Ada",), kind="person", tags=("ΟΔΟΣ",)),
        NewMemory("tea: outside", tags=("İstanbul",)),
    )
    await agent.embed()
    assert sorted(await agent.recalled("tea", **only)) == sorted(f"tea: {text}" for text in expected)


async def test_what_is_outdated_or_stale_comes_back_when_asked_for(agent: Agent, owner: asyncpg.Connection) -> None:
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
async def test_no_text_is_too_weird(agent: Agent, text: str) -> None:
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


async def test_a_turn_is_found_by_the_words_around_it_in_its_thread_and_graph(agent: Agent) -> None:
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


async def test_what_was_around_a_turn_and_is_gone_finds_it_no_longer(agent: Agent) -> None:
    turns = [
        NewMemory(text, thread="monday", at=MONDAY) for text in ("A red cello.", "Which zeppelin?", "Grey all day.")
    ]
    remembered = await agent.remember(*turns)
    await agent.embed()
    assert len(await agent.recalled("zeppelin")) == 3
    async with agent.writing() as (tx, revision):
        await revising.forget(tx, revision, [Target(id=remembered[1].id)], delete=True)
    await agent.embed()
    assert await agent.recalled("zeppelin") == []


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
async def test_a_blank_question_has_no_answer(agent: Agent, text: str) -> None:
    """It has no direction: its cosine with anything is not a number."""
    await agent.remember("it rained")
    await agent.embed()
    assert await agent.recalled(text) == []


@pytest.mark.parametrize("asked_with", [{"model": "another"}, {"vector": None}])
async def test_common_words_find_where_no_vector_can(
    agent: Agent, asked_with: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_MATCHED", 20)
    await agent.remember(*(f"The boat sails, entry {number}" for number in range(30)))
    await agent.embed()
    questions = [replace(question, **asked_with) for question in await embedded_questions("Where is the boat?")]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await recall.recall(await graphs.view(tx, None), questions, RecallFilter(), limit=10, token_budget=1500)
    assert len(found.hits) == 10


async def test_a_long_memory_is_close_once_and_leaves_room_for_others(agent: Agent) -> None:
    said = " ".join(["the harbour master counts every boat that comes in before the storm and writes it down"] * 4)
    long = " ".join(f"{said} number {number}." for number in range(5))
    others = [f"{said}, as {who} told us long ago in a garden." for who in ("Ada", "Bob")]
    remembered = await agent.remember(long, *others)
    await agent.embed()
    (new,) = await agent.remember(f"{said} number 7.")
    assert {close.memory_id for close in new.close} == {item.id for item in remembered}
    assert [close.score for close in new.close] == sorted((close.score for close in new.close), reverse=True)


async def test_common_words_find_what_is_not_embedded_yet(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_MATCHED", 20)
    await agent.remember(*(f"The boat sails, entry {number}" for number in range(30)))
    async with agent.db.transaction(agent.caller) as tx:
        await count_words(tx)
    assert await agent.recalled("Where is the boat?")


async def test_nul_is_refused_in_words(agent: Agent) -> None:
    """PostgreSQL holds any character but this one."""
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
async def test_a_substring_is_found_whatever_its_characters(agent: Agent, text: str, expected: list[str]) -> None:
    await agent.create(
        NewEntity("Ada", "Person", ("likes tea, but not coffee",)),
        NewEntity("Élan Ωmega", "person"),
        NewEntity('100%_\\ "it\'s"', "odd"),
        NewEntity("東京", "city", ("привет!", "a b")),
    )
    assert sorted(await agent.found(text)) == sorted(expected)


async def test_an_exact_name_comes_before_a_name_before_a_kind_before_an_observation(agent: Agent) -> None:
    await agent.create(
        NewEntity("D", "thing", ("has a cat",)), NewEntity("C", "cat"), NewEntity("Catherine"), NewEntity("CAT")
    )
    assert await agent.found("cat") == ["CAT", "Catherine", "C", "D"]
    assert [await agent.found("cat", limit=2, offset=offset) for offset in (0, 2, 4)] == [
        ["CAT", "Catherine"],
        ["C", "D"],
        [],
    ]


async def test_a_substring_may_cross_a_passages_edge(agent: Agent) -> None:
    words = [f"word{n}" for n in range(200)]
    await agent.create(NewEntity("Ada", "person", (" ".join(words),)))
    assert await agent.found(" ".join(words[75:85])) == ["Ada"]


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
async def test_search_nodes_filters(agent: Agent, only: dict[str, object], expected: list[str]) -> None:
    await agent.create(
        NewEntity("teapot", "tool", tags=("Kitchen",), importance=2),
        NewEntity("tearoom", "place", tags=("ΟΔΟΣ",), importance=7),
        NewEntity("tea"),
    )
    assert await agent.found("tea", **only) == expected
