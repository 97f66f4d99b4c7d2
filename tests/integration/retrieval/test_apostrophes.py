"""Apostrophes that keyboards write for each other are one, in every search by words and by substrings."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, RankedQuery, SubstringQuery
from tests.conftest import NewTenant
from tests.integration.retrieval.test_classic_searches import searched
from tests.support.memories import Agent, at_work, names

APOSTROPHES = "'’‘‛ʼ＇"
NAMES = [f"O{mark}Brien {number}" for number, mark in enumerate(APOSTROPHES)]
OTHERS = ["O Brien", "Oxbrien", "don t", "donut maker"]
SEARCHES: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "search_nodes": lambda text: (search.search_nodes, SubstringQuery(text)),
    "boolean_search": lambda text: (search.search_boolean, BooleanQuery(f'"{text}"')),
    "boolean_search of names": lambda text: (search.search_boolean, BooleanQuery(f'name:"{text}"')),
}


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(*NAMES, *OTHERS)
        yield agent


async def test_substrings_with_any_apostrophe_find_all_of_them(agent: Agent, subtests: pytest.Subtests) -> None:
    for mark in APOSTROPHES:
        for name, query in SEARCHES.items():
            with subtests.test(name, mark=mark):
                use_case, asked = query(f"o{mark}brien")
                assert sorted(names(await searched(agent, use_case, asked))) == sorted(NAMES)
                assert sorted(names(await searched(agent, use_case, asked, "1"))) == sorted(NAMES)


async def test_an_apostrophe_stands_for_no_other_character(agent: Agent) -> None:
    await agent.create(NewEntity("Doughnuts", "thing", ("I don’t know a donut_maker",)))
    for text, expected in (("don't", ["Doughnuts"]), ("o'x", []), ("d'o", []), ("t_m", ["Doughnuts"]), ("'", NAMES)):
        found = names(await searched(agent, search.search_nodes, SubstringQuery(text, limit=50)))
        assert set(found) == {*expected, *(["Doughnuts"] if text == "'" else [])}


async def test_ranked_words_end_at_every_apostrophe(agent: Agent) -> None:
    for mark in APOSTROPHES:
        hits = (await searched(agent, search.search_ranked, RankedQuery(f"O{mark}Brien", limit=50))).hits
        assert {hit.entity.name for hit in hits} >= set(NAMES)
        assert "Oxbrien" not in {hit.entity.name for hit in hits}


async def test_recall_finds_by_words_whatever_the_apostrophe(db: Database, new_tenant: NewTenant) -> None:
    """Nothing is embedded: only words find."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*(f"Report {n} of O{mark}Brien" for n, mark in enumerate(APOSTROPHES)))
        await agent.remember(NewMemory("sails", about=("Da’Vinci",)), "it rained", "tea was cold")
        for mark in APOSTROPHES:
            found = await agent.recalled(f"O{mark}Brien")
            assert sorted(found) == [f"Report {n} of O{other}Brien" for n, other in enumerate(APOSTROPHES)]
            assert await agent.recalled(f"Da{mark}Vinci") == ["sails"]
