"""Plans of the classic searches on a large table: they use indexes, and none looks at the square of a graph's rows.

The tests assert which index is used and how many rows are looked at, and never how long that takes.
"""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import as_of_parameters
from recollect.graph.graphs.view import GraphView
from recollect.postgres.database import Database
from recollect.postgres.sql import Queries
from recollect.retrieval.search import boolean
from recollect.retrieval.search import service as search
from recollect.retrieval.search.fuzzy import NearForm, bounds, folded, min_similarity
from recollect.retrieval.search.model import LabelQuery, like_pattern
from recollect.retrieval.search.store import (
    EXAMINED,
    MAX_SCANNED_ENTITIES,
    MAX_SUBSTRING_ROWS,
    SAMPLED,
    near_parameters,
    substring_patterns,
    term_patterns,
)
from recollect.retrieval.search.words import LETTER_AS_APOSTROPHE, WORD, expandable, word_pattern
from recollect.text.unicode_forms import written_forms
from recollect.words.analysis import AskedWord, all_of, query_of
from recollect_local.postgres import LocalPostgres
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work
from tests.support.plans import AS_JSON, explained, looked_at, steps

SIZE = 10_000
BATCH = 1_000
NEEDLE = "zyxwvut"
"""It occurs in one entity's observation, and its letters are adjacent nowhere else."""

queries = Queries("recollect.retrieval.search")
NO_FILTER: dict[str, Any] = {"kind": None, "tags": [], "importance": None, "archived": None}
PAGE = {"offset": 0, "limit": 101}


def entity(number: int) -> NewEntity:
    said = f"entity {number} likes tea with {number * 7919 % 1009} others" + (
        f" and {NEEDLE}" if number == 4_321 else ""
    )
    tags = (f"tag{number}",) if number % 100 == 0 else ()
    return NewEntity(f"name of {number * 104_729 % 99_991}", f"kind {number % 7}", (said,), tags)


@pytest.fixture(scope="module")
async def crowd(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graph has 10,000 entities, in tables that contain others', too."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        for first in range(0, SIZE, BATCH):
            await agent.create(*[entity(number) for number in range(first, first + BATCH)])
        yield agent


@pytest.fixture(scope="module", params=[True, False], ids=["with statistics", "without"])
async def known(crowd: Agent, postgres: LocalPostgres, request: pytest.FixtureRequest) -> bool:
    """Whether PostgreSQL has statistics of the searched tables, or none, as after a large import."""
    del crowd  # It is only needed before this.
    is_known: bool = request.param
    superuser = await asyncpg.connect(postgres.url(), server_settings={"search_path": "recollect, public"})
    try:
        await superuser.execute("ANALYZE nodes, observations, passages")
        if not is_known:
            await superuser.execute(
                "DELETE FROM pg_statistic WHERE starelid = ANY ($1::regclass[])"
                " OR starelid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY ($1::regclass[]))",
                ["nodes", "observations", "passages"],
            )
    finally:
        await superuser.close()
    return is_known


with_statistics = pytest.mark.parametrize("known", [True], ids=["with statistics"], indirect=True)


Search = tuple[str, dict[str, Any]]
"""The name of a query, and its arguments."""


async def plan(agent: Agent, query: str, arguments: dict[str, Any], similarity: float = 0.3) -> dict[str, Any]:
    """What PostgreSQL did as recollect_app for a query of the present."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        await tx.execute(queries.set_similarity, similarity=str(similarity))
        explain = explained(getattr(queries, query), AS_JSON)
        common = as_of_parameters(None) | NO_FILTER
        used = {name: none for name, none in common.items() if name in explain.parameters}
        told = await tx.fetchval(explain, graph_id=graph.id, **used, **arguments)
    found: dict[str, Any] = msgspec.json.decode(told)[0]["Plan"]
    return found


def indexes(plan: dict[str, Any]) -> set[str]:
    """The indexes that were read."""
    return {step["Index Name"] for step in steps(plan) if "Index Name" in step and step["Actual Loops"]}


def substring(text: str) -> Search:
    return "search_substring", {**substring_patterns(text), "gathered": MAX_SUBSTRING_ROWS, **PAGE}


def common_substring(text: str) -> Search:
    return "search_common_substring", {**substring_patterns(text), "max_scanned": MAX_SCANNED_ENTITIES, **PAGE}


def ranked(*words: str) -> Search:
    likes, regexes = [like_pattern(word) for word in words], [word_pattern(word) for word in words]
    return "search_ranked", {
        "patterns": likes,
        "regexes": regexes,
        "word": WORD,
        "apostrophe": LETTER_AS_APOSTROPHE,
        "entities": SIZE,
        **PAGE,
    }


def written_forms_of(*words: str) -> Search:
    asked = expandable(words)
    return "sample_words", {
        "words": [query_of(forms) for forms in asked.values()],
        "regexes": [word_pattern(word) for word in asked],
        "examined": EXAMINED,
        "sampled": SAMPLED,
    }


def all_words(text: str) -> Search:
    return "fuzzy_words", {"words": all_of(text), "examined": EXAMINED}


def expression(query: str) -> Search:
    asked = boolean.plan(boolean.parse(query))
    return "search_boolean", {
        **term_patterns(asked.terms),
        "required": [way[0] for way in asked.conjunctions],
        "forbidden": [way[1] for way in asked.conjunctions],
        "is_universal": asked.is_universal,
        **PAGE,
    }


def fuzzy(kind: str, text: str) -> Search:
    forms = [NearForm(form, bounds(len(form), len(form) + 1, 0.9)) for form in (*written_forms(text), folded(text))]
    near = near_parameters(forms)
    assert near["by_trigrams"]
    return f"fuzzy_{kind}", near if kind == "entities" else {**near, "min_similarity": min_similarity(forms)}


RARE = {
    "substring of an observation": (substring(NEEDLE), "observations_trigrams"),
    "substring of a name": (substring("name of 58420"), "nodes_trigrams"),
    "substring in two normal forms": (substring("Ångström"), "observations_trigrams"),
    "substring of a decomposed text": (substring("Ångström"), "observations_decomposed_trigrams"),
    "substring of a decomposed name": (substring("Ångström"), "nodes_decomposed_trigrams"),
    "ranked": (ranked(NEEDLE), "observations_trigrams"),
    "ranked in decomposed texts": (ranked("ångström"), "observations_decomposed_trigrams"),
    "boolean on observations": (expression(f"observation:{NEEDLE}"), "observations_trigrams"),
    "boolean in two normal forms": (expression("observation:Ångström"), "observations_trigrams"),
    "boolean on decomposed texts": (expression("observation:Ångström"), "observations_decomposed_trigrams"),
    "boolean on decomposed tags": (expression("tag:Ångström"), "nodes_decomposed_tag_trigrams"),
    "boolean on names": (expression("name:58420"), "nodes_trigrams"),
    "boolean on tags": (expression("tag:tag4300"), "nodes_tag_trigrams"),
    "boolean on anything": (expression(f"{NEEDLE} OR tag4300"), "nodes_tag_trigrams"),
    "other forms of a word": (written_forms_of(NEEDLE), "passages_words"),
    "fuzzy by words": (all_words(f"{NEEDLE} others"), "passages_words"),
    "fuzzy on observations": (fuzzy("statements", "entity 1 likes tee with"), "observations_length"),
    "fuzzy in two normal forms": (fuzzy("statements", "Ångström likes tee with"), "observations_length"),
}
"""Searches that find little, and the index that they should use."""

COMMON = {
    "substring of one character": substring("a"),
    "substring of two characters": substring("zy"),
    "common substring": common_substring("likes tea"),
    "common substring of few entities": common_substring("zy"),
    "other forms of common words": written_forms_of("likes", "tea", "name"),
    "fuzzy by common words": all_words("likes tea"),
    "ranked by common words": ranked("likes", "tea"),
    "boolean on anything, and not": expression("tea NOT type:1"),
    "fuzzy on names": fuzzy("entities", "name of 58420"),
    "boolean that all but a few hold of": expression("NOT tag:tag4300"),
}
"""Searches that must look at a whole graph."""


@with_statistics
@pytest.mark.parametrize("search", RARE)
@pytest.mark.usefixtures("known")
async def test_rare_matches_are_found_by_an_index(crowd: Agent, search: str) -> None:
    (query, arguments), index = RARE[search]
    done = await plan(crowd, query, arguments)
    assert index in indexes(done)
    assert looked_at(done) < SIZE / 10


@pytest.mark.parametrize("search", [*RARE, *COMMON])
@pytest.mark.usefixtures("known")
async def test_no_search_compares_all_rows_with_each_other(crowd: Agent, search: str) -> None:
    """Each row is looked at a few times: the most expensive search takes about 40 passes over the graph, the square
    would be 10,000.

    The number of passes depends on the plan, of which several are equally good. 100 is far from both.
    """
    query, arguments = COMMON[search] if search in COMMON else RARE[search][0]
    assert looked_at(await plan(crowd, query, arguments)) < 100 * SIZE


@with_statistics
@pytest.mark.usefixtures("known")
async def test_a_common_substring_is_found_without_looking_at_each_match(crowd: Agent) -> None:
    """Looking up each match, which every entity is, would take twice as many rows."""
    few = looked_at(await plan(crowd, *common_substring("likes tea")))
    query, arguments = substring("likes tea")
    each = looked_at(await plan(crowd, query, {**arguments, "gathered": SIZE}))
    assert few < each / 2


@with_statistics
@pytest.mark.usefixtures("known")
async def test_a_fuzzy_query_is_compared_with_few_names(crowd: Agent) -> None:
    """The planner decides between an index and a scan of the graph; most names are about as long as the query."""
    query, arguments = fuzzy("entities", "name of 58420")
    similarity = bounds(len("name of 58420"), 14, 0.9).similarity
    assert similarity is not None
    candidates = (await plan(crowd, query, arguments, similarity=similarity))["Actual Rows"]
    everything = (await plan(crowd, query, arguments, similarity=0))["Actual Rows"]
    assert 0 < candidates < everything / 10


@pytest.mark.proves("memgraph: searched-fields")
async def test_labels_are_found_by_their_index(crowd: Agent, known: bool) -> None:
    asked = LabelQuery((AskedWord(("tag4300",)),), 0.4)
    async with crowd.db.transaction(crowd.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        told = await tx.fetchval(
            explained(queries.match_labels, AS_JSON),
            graph_id=graph.id,
            words=[query_of(word) for word in asked.words],
            optional=[False],
            any_word=asked.any_word,
            limit=asked.limit,
            min_share=asked.share,
            kinds=[],
            tags=[],
            **as_of_parameters(None),
            fresh_only=False,
        )
        (found,) = await search.match_labels(GraphView(tx, graph), asked)
    done = msgspec.json.decode(told)[0]["Plan"]
    assert found.text == "tag4300"
    assert looked_at(done) < (SIZE / 10 if known else 100 * SIZE)
    assert not known or "nodes_labels_in_words" in indexes(done)
