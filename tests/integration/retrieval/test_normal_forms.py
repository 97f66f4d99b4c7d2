"""Texts and names are found in whichever of Unicode's normal forms they and the query are written, and in any case."""

import unicodedata
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.fairness.computing import finish
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Revision
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, FuzzyQuery, LabelQuery, RankedQuery, SubstringQuery
from recollect.words.analysis import asked_words
from tests.conftest import NewTenant
from tests.integration.retrieval.test_classic_searches import searched
from tests.support.memories import Agent, at_work, names

WORDS = ("Ångström", "한국어", "tiếng Việt", "Ξένιος", "がぎぐ", "\u212bngkor")
"""Words that Unicode also has decomposed; the last is written in neither of these forms (with the sign of a unit)."""

FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
SEARCHES: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "search_nodes": lambda text: (search.search_nodes, SubstringQuery(text)),
    "boolean_search": lambda text: (search.search_boolean, BooleanQuery(f'"{text}"')),
    "boolean_search of names": lambda text: (search.search_boolean, BooleanQuery(f'name:"{text}"')),
    "boolean_search of tags": lambda text: (search.search_boolean, BooleanQuery(f'tag:"{text}"')),
    "fuzzy_search": lambda text: (search.search_fuzzy, FuzzyQuery(f"{text} 7", threshold=0.6)),
}


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """For each word and form: an entity with it as name and tag, one that says it, and others that do not."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(
            *(NewEntity(f"{written} {place}", "thing", (), (written,)) for place, written in enumerate(forms(*WORDS))),
            *(NewEntity(f"Thing {place}", "thing", (f"{written} !",)) for place, written in enumerate(forms(*WORDS))),
            *(NewEntity(f"Other {word[0]}", "thing", (f"{word[1:]} is not it",)) for word in map(plain, WORDS)),
        )
        yield agent


async def test_every_search_finds_both_forms_now_and_in_the_past(agent: Agent, subtests: pytest.Subtests) -> None:
    for word in WORDS:
        for written in forms(word):
            for name, query in SEARCHES.items():
                with subtests.test(name, written=written):
                    use_case, asked = query(written)
                    for moment in ((), ("1",)):
                        found = names(await searched(agent, use_case, asked, *moment))
                        assert {n for n in found if not n.startswith(("Thing", "Other"))} == names_of(word)
                        if name in ("search_nodes", "boolean_search"):
                            assert {n for n in found if n.startswith("Thing")} == things_of(word)


async def test_ranked_words_are_counted_in_both_forms(agent: Agent, subtests: pytest.Subtests) -> None:
    for word in WORDS:
        for written in forms(word):
            with subtests.test(written=written):
                hits = (await searched(agent, search.search_ranked, RankedQuery(written, limit=50))).hits
                assert {hit.entity.name for hit in hits} >= names_of(word) | things_of(word)
                found = {hit.entity.name: hit for hit in hits}
                assert all(found[name].in_name for name in names_of(word))
                assert all(found[name].in_observations for name in things_of(word))


async def test_a_name_in_another_form_comes_first(agent: Agent) -> None:
    for written in forms(WORDS[0]):
        found = names(await searched(agent, search.search_nodes, SubstringQuery(f"{written} 0")))
        assert found[0] == f"{unicodedata.normalize('NFC', WORDS[0])} 0"


async def test_tags_and_labels_are_found_whatever_their_apostrophe(db: Database, new_tenant: NewTenant) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        tags = ("O'Brien", "O’Brien", "O’BRIEN")
        await agent.create(*(NewEntity(f"File {n}", "file", ("likes tea",), (tag,)) for n, tag in enumerate(tags)))
        await agent.create(NewEntity("Zoë O’Hara", "person"), NewEntity("Unlike", "file", ("likes tea",), ("OBrien",)))
        for tag in (*tags, "oʼbrien"):
            assert sorted(await agent.found("likes", tags=(tag,))) == ["File 0", "File 1", "File 2"]
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, None)
            for asked in tags:
                matches = await search.match_labels(view, LabelQuery(tuple(finish(asked_words(asked))), 1.0))
                assert sorted(match.text for match in matches) == sorted(tags)
            for question in ("where is Zoë O'Hara?", "where is ZOË O’HARA?", "Where is Zoe\u0308 O'Hara?"):
                assert len(await search.find_mentioned(tx, view.graph, question)) == 1


async def test_names_with_other_apostrophes_are_told_as_alike(db: Database, new_tenant: NewTenant) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create("Rory O’Brien")
        async with agent.writing() as (tx, revision):
            made = await search_look_alikes(tx, revision, "RORY O'Brien")
        assert made == ["Rory O’Brien"]


async def search_look_alikes(tx: Transaction, revision: Revision, name: str) -> list[str]:
    created = await entities.create_entities(tx, revision, [NewEntity(name)])
    found = await entities.find_similar_names(
        tx, revision.graph, [(node_id, entity.name) for node_id, entity in created]
    )
    return [other.name for others in found.values() for other in others]


def forms(*words: str) -> list[str]:
    """The words as they are, composed and decomposed, each once."""
    written = [text for word in words for text in (*(unicodedata.normalize(form, word) for form in FORMS), word)]
    return list(dict.fromkeys(written))


def plain(word: str) -> str:
    return unicodedata.normalize("NFC", word)


def places(word: str) -> list[int]:
    """The places among all forms of those that are canonically this word."""
    return [place for place, written in enumerate(forms(*WORDS)) if plain(written) == plain(word)]


def names_of(word: str) -> set[str]:
    return {f"{forms(*WORDS)[place]} {place}" for place in places(word)}


def things_of(word: str) -> set[str]:
    return {f"Thing {place}" for place in places(word)}
