"""Substrings of words that are partly composed and partly decomposed, and fuzzy searches without accents."""

import unicodedata
from collections.abc import AsyncIterator, Sequence

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, FuzzyQuery, RankedQuery, SubstringQuery
from tests.conftest import NewTenant
from tests.integration.retrieval.test_classic_searches import searched
from tests.support.memories import Agent, at_work, names

WORDS = {"hangul": "한국어", "syllable": "각", "latin": "éàü", "vietnamese": "Việt", "japanese": "がぎぐ"}


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """For each word, entities that have it in each mixture of forms as name, kind, tag and observation; and others."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        for kind, word in WORDS.items():
            for number, mixed in enumerate(mixtures(word)):
                await agent.create(
                    NewEntity(f"{mixed} {kind} name {number}", "thing"),
                    NewEntity(f"{kind} kind {number}", f"of {mixed}"),
                    NewEntity(f"{kind} tag {number}", "thing", (), (f"{mixed}!",)),
                    NewEntity(f"{kind} text {number}", "thing", (f"says {mixed} aloud",)),
                )
        await agent.create(
            *(NewEntity(f"other {word[1:]}", "thing", (f"{word[1:]}{word[0]}",)) for word in WORDS.values() if word[1:])
        )
        for name in ("Müller", "Xylophon", "Bogota\u0301 Café", "Łódź", "Straße"):
            await agent.create(
                NewEntity(name, "place"), NewEntity(f"who says {len(name)}", "person", (f"{name} is it",))
            )
        await agent.create(NewEntity("Kind", "Gefäß"), *(f"thing {n}" for n in range(20)))
        yield agent


async def test_substrings_are_found_in_each_mixture_of_forms(agent: Agent, subtests: pytest.Subtests) -> None:
    for kind, word in WORDS.items():
        count = len(mixtures(word))
        for asked in mixtures(word):
            for moment in ((), (str((await agent.head()).revision),)):
                with subtests.test(kind, asked=asked, moment=moment):
                    found = names(await searched(agent, search.search_nodes, SubstringQuery(asked, limit=500), *moment))
                    assert counted(found, kind) == {"name": count, "kind": count, "text": count}
                    query = BooleanQuery(f'"{asked}"', limit=500)
                    found = names(await searched(agent, search.search_boolean, query, *moment))
                    assert counted(found, kind) == {"name": count, "kind": count, "tag": count, "text": count}
                    assert not [name for name in found if name.startswith("other")]


async def test_ranked_words_are_found_in_each_mixture_of_forms(agent: Agent, subtests: pytest.Subtests) -> None:
    for kind in ("hangul", "latin", "vietnamese"):
        count = len(mixtures(WORDS[kind]))
        with subtests.test(kind):
            hits = (await searched(agent, search.search_ranked, RankedQuery(WORDS[kind], limit=500))).hits
            found = [hit.entity.name for hit in hits]
            assert counted(found, kind) == {"name": count, "kind": count, "text": count}


async def test_fuzzy_searches_find_in_spite_of_an_accent_and_a_typing_error(
    agent: Agent, subtests: pytest.Subtests
) -> None:
    for asked, expected in {
        "Mullar": "Müller",
        "Muellar": "Müller",
        "Xylofön": "Xylophon",
        "Bogata Cafe": "Bogota\u0301 Café",
        "Bogatá Café": "Bogota\u0301 Café",
        "Lodzi": "Łódź",
        "Strase": "Straße",
        "Gefasse": "Kind",
    }.items():
        for moment in ((), (str((await agent.head()).revision),)):
            with subtests.test(asked, moment=moment):
                found = await searched(agent, search.search_fuzzy, FuzzyQuery(asked, threshold=0.65), *moment)
                assert expected in names(found)
    for asked, expected in {"Mullar is it": "who says 6", "Xylofön is at": "who says 8"}.items():
        with subtests.test(asked):
            found = await searched(agent, search.search_fuzzy, FuzzyQuery(asked))
            assert expected in names(found)


async def test_fuzzy_searches_without_letters_find_nothing(agent: Agent, subtests: pytest.Subtests) -> None:
    for asked in ("\u2060", "\u0301", "\u200b", "'", " "):
        with subtests.test(asked=ascii(asked)):
            assert names(await searched(agent, search.search_fuzzy, FuzzyQuery(asked))) == []


def mixtures(word: str) -> list[str]:
    """The word composed, decomposed, with one letter of each kind, and with the end of a syllable apart."""
    composed = unicodedata.normalize("NFC", word)
    decomposed = [unicodedata.normalize("NFD", letter) for letter in composed]
    one = ["".join((*composed[:n], decomposed[n], *composed[n + 1 :])) for n in range(len(composed))]
    ends = [
        composed[:n] + unicodedata.normalize("NFC", d[:2]) + d[2:] + composed[n + 1 :] for n, d in enumerate(decomposed)
    ]
    return list(dict.fromkeys((composed, "".join(decomposed), *one, *ends)))


def counted(found: Sequence[str], kind: str) -> dict[str, int]:
    """How many of these entities are of this kind of word, by where they have it."""
    places = [place for place in ("name", "kind", "tag", "text") for name in found if f"{kind} {place} " in name]
    return {place: places.count(place) for place in dict.fromkeys(places)}
