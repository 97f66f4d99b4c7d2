"""The classic searches find what their plain definitions find, now and in the past, and nothing else."""

import itertools
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import Entity, NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Moment
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retention.expiry import service as expiry
from recollect.retrieval.search import service as search
from recollect.retrieval.search import store
from recollect.retrieval.search.boolean import Expression, SubstringTerm
from recollect.retrieval.search.fuzzy import bounds
from recollect.retrieval.search.model import (
    BooleanQuery,
    DateQuery,
    FuzzyQuery,
    RankedQuery,
    SubstringQuery,
)
from recollect.retrieval.search.words import WORD, expandable, word_pattern, words_of
from recollect.words.stemming import forms
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.expressions import expressions, holds, written
from tests.support.memories import Agent, at_work, names, triples

_graphs = itertools.count(1)

TEXTS = st.text(alphabet="aAbßé %_\\'\"-京東😀\u0301", min_size=1, max_size=8)
SOME_WORDS = ["tea", "Tea", "teapot", "TEA-time", "café", "東京", "of", "a_b"]
PHRASES = st.one_of(TEXTS, st.lists(st.sampled_from(SOME_WORDS), min_size=1, max_size=5).map(" ".join))
TAGS = st.lists(st.sampled_from(["New", "new", "old%", "a\nb"]), max_size=2).map(tuple)
IMPORTANCES = st.sampled_from([None, 1.0, 5.0, 9.0])
ENTITIES = st.lists(
    st.builds(
        NewEntity,
        name=PHRASES,
        kind=st.one_of(st.none(), st.sampled_from(["tea", "person", "Person"])),
        observations=st.lists(PHRASES, max_size=3).map(tuple),
        tags=TAGS,
        importance=IMPORTANCES,
    ),
    max_size=6,
    unique_by=lambda entity: entity.name,
)
FILTERS = st.fixed_dictionaries(
    {}, optional={"tags": TAGS, "min_importance": IMPORTANCES, "max_importance": IMPORTANCES, "kind": st.just("tea")}
)
PROPERTY = examples(30)
COMMON_FROM = [(0, 1), (0, 3), (1, 100)]
"""The number of matches from which a substring counts as common, and how many entities are then looked at first."""


@pytest.fixture(scope="module")
async def searching(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


async def graph_with(agent: Agent, entities: Sequence[NewEntity]) -> Agent:
    """The agent in a new graph with these entities, and with others that are deleted, expired or placeholders."""
    agent = replace(agent, graph=f"graph-{next(_graphs)}")
    await agent.create(*entities, NewEntity("deleted tea", "tea", ("tea",), tags=("new",), importance=5))
    await agent.relate(*[(entity.name, "placeholder tea", "of") for entity in entities[:1]])
    await agent.delete("deleted tea")
    async with agent.writing() as (tx, revision):
        gone = datetime.now(UTC) - timedelta(hours=1)
        await nodes.create_nodes(tx, revision, [NodeFields(name="expired tea", kind="tea", expires_at=gone)])
    return agent


async def entities_of(agent: Agent, only: dict[str, Any]) -> list[Entity]:
    """The entities that read_graph returns, filtered in Python."""
    return [entity for entity in (await agent.read()).entities if passes(entity, **only)]


def passes(
    entity: Entity,
    *,
    kind: str | None = None,
    tags: Sequence[str] = (),
    min_importance: float | None = None,
    max_importance: float | None = None,
) -> bool:
    wanted = {tag.lower() for tag in tags}
    return (
        (kind is None or entity.kind == kind)
        and (not wanted or bool(wanted & {tag.lower() for tag in entity.tags}))
        and (min_importance is None or (entity.importance is not None and entity.importance >= min_importance))
        and (max_importance is None or (entity.importance is not None and entity.importance <= max_importance))
    )


def fields(entity: Entity) -> list[str]:
    return [entity.name, entity.kind or "", *entity.observations]


async def searched(agent: Agent, use_case: Callable[..., Awaitable[Any]], query: Any, as_of: str | None = None) -> Any:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await use_case(await graphs.view(tx, agent.graph, as_of), query)


async def found_now_and_in_the_past(agent: Agent, use_case: Callable[..., Awaitable[Any]], query: Any) -> Any:
    """The result now. The same is found as of now after everything was deleted."""
    now = await searched(agent, use_case, query)
    head = await agent.head()
    await agent.delete(*names(await agent.read()))
    assert await searched(agent, use_case, query, str(head.revision)) == now
    return now


# Substring


@PROPERTY
@given(entities=ENTITIES, text=TEXTS, only=FILTERS)
async def test_a_substring_search_finds_every_occurrence(
    searching: Agent, entities: list[NewEntity], text: str, only: dict[str, Any]
) -> None:
    agent = await graph_with(searching, entities)
    wanted = {
        e.name for e in await entities_of(agent, only) if any(text.lower() in field.lower() for field in fields(e))
    }
    query = SubstringQuery(text, **only)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, agent.graph)
        ordered = await store.search_substring(view, query)
        for (gathered, max_scanned), offset, limit in itertools.product(COMMON_FROM, (0, 1), (1, 2)):
            page = replace(query, offset=offset, limit=limit)
            part = await store.search_substring(view, page, gathered=gathered, max_scanned=max_scanned)
            assert part == ordered[offset : offset + limit + 1]
    found = await found_now_and_in_the_past(agent, search.search_nodes, query)
    assert [entity.id for entity in found.entities] == ordered
    assert set(names(found)) == wanted


# Ranked


def tf_idf(entities: Sequence[Entity], query: str) -> dict[str, float]:
    """Names and scores of the entities that contain a word of the query, by the enhanced memory server's formula."""
    texts = {entity.name: " ".join(fields(entity)).lower() for entity in entities}
    scores: dict[str, float] = {}
    for word in words_of(query.lower()):
        counts = {name: len(re.findall(word_pattern(word), text)) for name, text in texts.items()}
        holding = [name for name, count in counts.items() if count]
        for name in holding:
            tf = counts[name] / len(re.findall(WORD, texts[name]))
            scores[name] = scores.get(name, 0.0) + tf * math.log(len(texts) / len(holding))
    return scores


def has_other_forms(query: str, entities: Sequence[NewEntity]) -> bool:
    """Whether a word of the query is in the entities in another form, which counts, too."""
    written = {word for e in entities for text in fields_of(e) for word in re.findall(WORD, text.lower())}
    asked = expandable(words_of(query))
    pairs = ((word, other) for word in asked for other in written if other != word)
    return any(not set(forms(other)).isdisjoint(asked[word].forms) for word, other in pairs)


def fields_of(entity: NewEntity) -> list[str]:
    return [entity.name, entity.kind or "", *entity.observations]


@pytest.mark.proves("enhanced-server: ranked-search")
@PROPERTY
@given(entities=ENTITIES, query=PHRASES, only=FILTERS)
async def test_scores_of_a_ranked_search_are_those_of_the_formula(
    searching: Agent, entities: list[NewEntity], query: str, only: dict[str, Any]
) -> None:
    assume(not has_other_forms(query, entities))
    agent = await graph_with(searching, entities)
    wanted = tf_idf(await entities_of(agent, only), query)
    found = await found_now_and_in_the_past(agent, search.search_ranked, RankedQuery(query, **only))
    assert {hit.entity.name: hit.score for hit in found.hits} == pytest.approx(wanted)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


async def test_an_expired_entity_does_not_count_as_a_document(agent: Agent) -> None:
    agent = await graph_with(agent, [NewEntity("rare"), NewEntity("common"), NewEntity("other common")])
    [hit] = (await searched(agent, search.search_ranked, RankedQuery("rare"))).hits
    assert hit.score == pytest.approx(math.log(3 / 1))


@pytest.mark.parametrize("gone", [0, 1, 3, 4, 5])
async def test_expired_and_archived_entities_are_excluded_once(agent: Agent, gone: int) -> None:
    """Two of five live entities contain the word, and one more is archived. It weighs ln(4 / 2), however many have
    expired."""
    await agent.create(*[NewEntity(f"tea {n}") for n in range(2)], *[NewEntity(f"milk {n}") for n in range(2)])
    async with agent.writing() as (tx, revision):
        past = datetime.now(UTC) - timedelta(hours=1)
        made = [NodeFields(name=f"meeting {n}", kind="event", expires_at=past) for n in range(gone)]
        await nodes.create_nodes(tx, revision, [NodeFields(name="old", kind="thing", status="archived"), *made])
        graph_id = revision.graph.id
    query = RankedQuery("tea", archived=False)
    before = await searched(agent, search.search_ranked, query)
    assert [hit.score for hit in before.hits] == pytest.approx([math.log(4 / 2) / 2] * 2)  # one word of two
    async with agent.db.transaction(agent.caller) as tx:
        step = await expiry.archive_expired(tx, graph_id)
    assert step.nodes == gone
    assert await searched(agent, search.search_ranked, query) == before
    assert await searched(agent, search.search_ranked, query, str((await agent.head()).revision)) == before


async def test_a_ranked_search_is_paged(agent: Agent) -> None:
    await agent.create(*[NewEntity(f"tea {n}", None, ("x " * n,)) for n in range(5)], NewEntity("none"))
    whole = await searched(agent, search.search_ranked, RankedQuery("tea"))
    pages = [await searched(agent, search.search_ranked, RankedQuery("tea", offset=n, limit=2)) for n in (0, 2, 4)]
    assert [hit for page in pages for hit in page.hits] == whole.hits
    assert [page.next_offset for page in pages] == [2, 4, None]


# Boolean

FIELDS = st.sampled_from([None, "name", "type", "observation", "tag"])


def matches(entity: Entity, term: SubstringTerm) -> bool:
    texts = {
        "name": [entity.name],
        "type": [entity.kind or ""],
        "observation": list(entity.observations),
        "tag": list(entity.tags),
    }
    chosen = texts.values() if term.field is None else [texts[term.field]]
    return any(term.text.lower() in text.lower() for of in chosen for text in of)


@pytest.mark.proves("enhanced-server: boolean-search")
@PROPERTY
@given(
    entities=ENTITIES,
    expression=expressions(st.one_of(TEXTS, st.sampled_from(["tea", "e", "new", "ld%", "a\nb"])), FIELDS),
    only=FILTERS,
)
async def test_a_boolean_search_finds_the_entities_that_satisfy_it(
    searching: Agent, entities: list[NewEntity], expression: Expression, only: dict[str, Any]
) -> None:
    agent = await graph_with(searching, entities)
    everything = await entities_of(agent, only)
    wanted = [entity.name for entity in everything if holds(expression, partial(matches, entity))]
    found = await found_now_and_in_the_past(agent, search.search_boolean, BooleanQuery(written(expression), **only))
    assert names(found) == wanted


async def test_a_tag_search_does_not_match_across_two_tags(agent: Agent) -> None:
    """All tags of an entity are indexed as one text, one after the other."""
    await agent.create(NewEntity("Ada", tags=("red", "blue")), NewEntity("Bob", tags=("red\nblue",)))
    assert names(await searched(agent, search.search_boolean, BooleanQuery('tag:"d\nb"'))) == ["Bob"]


async def test_a_syntax_error_is_reported_even_if_the_graph_does_not_exist(agent: Agent) -> None:
    with pytest.raises(InvalidInput, match="character 1"):
        await searched(replace(agent, graph="nowhere"), search.search_boolean, BooleanQuery(")"))


# Fuzzy

WORDS = st.text(alphabet="abcé 東-", min_size=1, max_size=14)


def typos(query: str) -> st.SearchStrategy[str]:
    """Texts that are a few edits away from a query."""
    edit = st.tuples(st.integers(0, len(query)), st.sampled_from(["", "x", "a", " "]), st.integers(0, 1))

    def edited(edits: list[tuple[int, str, int]]) -> str:
        text = query
        for place, new, cut in edits:
            text = text[:place] + new + text[place + cut :]
        return text or query

    return st.lists(edit, max_size=4).map(edited)


@st.composite
def near_corpora(draw: st.DrawFn) -> tuple[str, list[NewEntity]]:
    """A query, and entities of which some nearly contain it."""
    query = draw(WORDS)
    texts = st.one_of(typos(query), WORDS)
    entity = st.builds(
        NewEntity, name=texts, kind=st.one_of(st.none(), texts), observations=st.lists(texts, max_size=2).map(tuple)
    )
    return query, draw(st.lists(entity, max_size=6, unique_by=lambda entity: entity.name))


def nearness(entity: Entity, query: str) -> float:
    """The similarity to the nearest field by the formula of the enhanced memory server, ignoring case."""
    distances = [(Levenshtein.distance(query.lower(), field.lower()), len(field)) for field in fields(entity)]
    return max(1 - distance / max(len(query), length) for distance, length in distances)


@pytest.mark.proves("organize: fuzzy_search", "enhanced-server: fuzzy-search")
@PROPERTY
@given(corpus=near_corpora(), threshold=st.one_of(st.just(0.7), st.sampled_from([0.0, 0.4, 0.6, 0.8, 0.9, 1.0])))
async def test_a_fuzzy_search_finds_what_a_full_scan_finds(
    searching: Agent, corpus: tuple[str, list[NewEntity]], threshold: float
) -> None:
    query, entities = corpus
    agent = await graph_with(searching, entities)
    scanned = {entity.name: nearness(entity, query) for entity in await entities_of(agent, {})}
    wanted = {name for name, similarity in scanned.items() if similarity >= threshold}
    found = await found_now_and_in_the_past(agent, search.search_fuzzy, FuzzyQuery(query, threshold))
    assert set(names(found)) == wanted
    similarities = [scanned[name] for name in names(found)]
    assert similarities == sorted(similarities, reverse=True)


@examples(400)
@given(
    pair=WORDS.flatmap(lambda query: st.tuples(st.just(query), typos(query))),
    threshold=st.one_of(st.just(0.7), st.floats(0.5, 1)),
)
async def test_trigram_similarity_of_a_near_text_is_within_the_bound(
    db: Database, caller: Caller, pair: tuple[str, str], threshold: float
) -> None:
    """The bound itself, compared with what pg_trgm computes for both texts."""
    query, text = pair
    if 1 - Levenshtein.distance(query, text) / max(len(query), len(text)) < threshold:
        return
    async with db.transaction(caller, read_only=True) as tx:
        [(_, trigrams)] = await store.count_trigrams(tx, query)
        similarity = await tx.fetchval(Query.compile("SELECT similarity(:one, :other)"), one=query, other=text)
    within = bounds(len(query), trigrams, threshold)
    assert within.similarity is None or similarity >= within.similarity


async def test_fuzzy_candidates_are_fetched_in_pages_without_loss(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [f"tea {n}" for n in range(7)]
    await agent.create(*[NewEntity(name, "tee", (f"taa {name[-1]}", "tea of it")) for name in wanted])
    monkeypatch.setattr(store, "STREAMED", 2)
    monkeypatch.setattr(store, "MAX_FETCHED", 2)
    found = await searched(agent, search.search_fuzzy, FuzzyQuery("tea 9", 0.5))
    assert names(found) == wanted
    some = await searched(agent, search.search_fuzzy, FuzzyQuery("tea 9", 0.5, offset=2, limit=3))
    assert (names(some), some.next_offset) == (wanted[2:5], 5)


async def test_a_fuzzy_search_with_too_many_comparisons_is_refused(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.create(*(NewEntity(f"tea {n}", "tee") for n in range(7)))
    monkeypatch.setattr(search, "MAX_FUZZY_CHARACTERS", 50)
    with pytest.raises(TooLarge, match="Raise the threshold") as refused:
        await searched(agent, search.search_fuzzy, FuzzyQuery("tea 9", 0))
    assert refused.value.code == ErrorCode.TOO_COSTLY
    assert names(await searched(agent, search.search_fuzzy, FuzzyQuery("teq 3", 0.9, tags=("none",)))) == []


async def test_size_of_an_answer_is_limited_before_it_is_read(agent: Agent, db: Database) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes notes", "häkelt"), ()))
    size = len(json.dumps(["writes notes", "häkelt"], ensure_ascii=False, separators=(",", ":")).encode())
    before = Moment((await agent.head()).revision, datetime.now(UTC))
    await agent.observe("Ada", "a" * 100)
    await agent.unobserve(("Ada", "a" * 100))
    for available, said in ((size, ("writes notes", "häkelt")), (size - 2, ("häkelt",))):
        for at in (None, before):
            async with db.transaction(agent.caller, read_only=True, reply_bytes=available * 4 // 3 + 1) as tx:
                view = replace(await graphs.view(tx, None), at=at)
                listed = await entities.list_entities(view)
                assert [(ada.observations, ada.omitted) for ada in listed] == [(said, 2 - len(said))]
                assert await entities.open_entities(view, ["Ada", "nobody"]) == listed
                assert await entities.open_entities(view, ["nobody"]) == []


async def test_the_similarity_setting_ends_with_its_search(agent: Agent, db: Database) -> None:
    await agent.create("lighthouse")
    await searched(agent, search.search_fuzzy, FuzzyQuery("lihgthouse"))
    async with db.transaction(agent.caller, read_only=True) as tx:
        assert await tx.fetchval(Query.compile("SELECT current_setting('pg_trgm.similarity_threshold', true)")) in (
            "0.3",
            "",
            None,
        )


# Dates


async def test_a_date_range_finds_entities_created_or_changed_in_it(agent: Agent) -> None:
    await agent.create("old")
    made = (await agent.open("old")).entities[0].created_at
    await agent.create("new")
    later = (await agent.open("new")).entities[0].created_at
    await agent.observe("old", "changed")
    changed = (await agent.open("old")).entities[0].updated_at
    tick = timedelta(microseconds=1)
    expected: list[tuple[tuple[datetime | None, datetime | None], list[str]]] = [
        ((None, None), ["old", "new"]),
        ((made, made), ["old"]),
        ((None, made - tick), []),
        ((made + tick, later - tick), []),
        ((later, later), ["new"]),
        ((later + tick, None), ["old"]),
        ((changed, changed), ["old"]),
        ((changed + tick, None), []),
    ]
    for (since, until), found in expected:
        assert names(await searched(agent, search.search_dates, DateQuery(since, until))) == found, (since, until)
    before = str((await agent.head()).revision - 1)
    assert names(await searched(agent, search.search_dates, DateQuery(later + tick), before)) == []


@PROPERTY
@given(entities=ENTITIES, only=FILTERS)
async def test_a_date_range_without_ends_finds_every_entity(
    searching: Agent, entities: list[NewEntity], only: dict[str, Any]
) -> None:
    agent = await graph_with(searching, entities)
    wanted = [entity.name for entity in await entities_of(agent, only)]
    assert names(await searched(agent, search.search_dates, DateQuery(**only))) == wanted


# All searches

USE_CASES: dict[str, tuple[Callable[..., Awaitable[Any]], Any]] = {
    "substring": (search.search_nodes, SubstringQuery("tea")),
    "ranked": (search.search_ranked, RankedQuery("tea")),
    "boolean": (search.search_boolean, BooleanQuery("tea OR NOT tea")),
    "fuzzy": (search.search_fuzzy, FuzzyQuery("teq", 0.5)),
    "dates": (search.search_dates, DateQuery()),
}


@pytest.mark.parametrize("kind", USE_CASES)
async def test_a_graph_that_does_not_exist_is_empty(agent: Agent, kind: str) -> None:
    use_case, query = USE_CASES[kind]
    found = await searched(replace(agent, graph="nowhere"), use_case, query)
    assert found in (await searched(replace(agent, graph="nobody"), use_case, query),)
    assert not getattr(found, "entities", getattr(found, "hits", None))


@pytest.mark.parametrize("kind", USE_CASES)
async def test_deleted_expired_and_foreign_content_is_not_found(
    agent: Agent, db: Database, new_tenant: NewTenant, kind: str
) -> None:
    """Deleted, expired, placeholders, facts, expired and deleted observations, other graphs and other tenants."""
    async with at_work(db, operator_caller(await new_tenant())) as stranger:
        await stranger.create(NewEntity("foreign tea", "tea", ("tea",)))
        await replace(agent, graph="other").create(NewEntity("elsewhere tea", "tea", ("tea",)))
        agent = await graph_with(agent, [NewEntity("tea", "tea", ("tea",))])
        await agent.remember("a fact about tea")
        await agent.create(NewEntity("silent", None, ("tea",)))
        await agent.unobserve(("silent", "tea"))
        await agent.relate(("tea", "tea placeholder", "of"))
        use_case, query = USE_CASES[kind]
        found = await searched(agent, use_case, query)
    entities = [hit.entity for hit in found.hits] if kind == "ranked" else found.entities
    assert {entity.name for entity in entities} == ({"tea", "silent"} if kind in ("boolean", "dates") else {"tea"})
    if kind != "ranked":
        assert ("tea", "tea placeholder", "of") in triples(found)
