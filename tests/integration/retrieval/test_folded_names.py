"""Names and texts are found whichever accents, width and mixture of normal forms they and the query have."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, FuzzyQuery, RankedQuery, SubstringQuery
from tests.conftest import NewTenant
from tests.integration.retrieval.test_classic_searches import searched
from tests.support.memories import Agent, at_work, names

MIXED = "re\u0301sumé of na\u00efve Zoe\u0308"
"""Partly composed, partly decomposed."""

NAMES = ["Zoë", "Zoé Łuk", "zoo", "Bogota\u0301 Café", "Ｆａｌｃｏｎ", "Straße 7", "O’Hara", "Müller", "김철수"]


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(*NAMES, NewEntity("Papers", "thing", (MIXED, "other things")), NewEntity(MIXED[:7], "thing"))
        await agent.create(*(f"thing {n}" for n in range(20)))
        yield agent


async def completed(agent: Agent, prefix: str) -> list[str]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found, _ = await search.complete_names(await graphs.view(tx, None), prefix, limit=20)
    return found


async def test_substrings_are_found_in_texts_that_are_partly_composed(agent: Agent, subtests: pytest.Subtests) -> None:
    for asked in ("résumé of", "re\u0301sume\u0301", "of naïve Zoë", "of nai\u0308ve"):
        for moment in ((), ("1",)):
            with subtests.test(asked, moment=moment):
                found = await searched(agent, search.search_nodes, SubstringQuery(asked), *moment)
                assert "Papers" in names(found)
                found = await searched(agent, search.search_boolean, BooleanQuery(f'observation:"{asked}"'), *moment)
                assert names(found) == ["Papers"]
    assert names(await searched(agent, search.search_nodes, SubstringQuery("résúmé of"))) == []
    assert names(await searched(agent, search.search_nodes, SubstringQuery("résumé"))) == [MIXED[:7], "Papers"]
    [hit] = (await searched(agent, search.search_ranked, RankedQuery("naïve"))).hits
    assert hit.entity.name == "Papers"


async def test_names_are_completed_without_accents_width_and_apostrophes(
    agent: Agent, subtests: pytest.Subtests
) -> None:
    for prefix, expected in {
        "zo": {"Zoë", "Zoé Łuk", "zoo"},
        "zoé": {"Zoë", "Zoé Łuk"},
        "Zoe\u0308": {"Zoë", "Zoé Łuk"},
        "zoe l": {"Zoé Łuk"},
        "bogota c": {"Bogota\u0301 Café"},
        "Bogotá": {"Bogota\u0301 Café"},
        "falc": {"Ｆａｌｃｏｎ"},
        "strasse": {"Straße 7"},
        "STRASSE": {"Straße 7"},
        "o'h": {"O’Hara"},
        "O‘H": {"O’Hara"},
        "mull": {"Müller"},
        "김": {"김철수"},
        "tho": set(),
    }.items():
        with subtests.test(prefix):
            assert set(await completed(agent, prefix)) == expected


async def test_near_texts_are_found_without_accents_and_width(agent: Agent, subtests: pytest.Subtests) -> None:
    for query, expected in {
        "zoe": {"Zoë"},
        "Bogotá Café": {"Bogota\u0301 Café"},
        "bogota cafe": {"Bogota\u0301 Café"},
        "Falcon": {"Ｆａｌｃｏｎ"},
        "strasse 7": {"Straße 7"},
        "o'hara": {"O’Hara"},
        "resume of naive zoe": {"Papers"},
    }.items():
        for moment in ((), ("1",)):
            with subtests.test(query, moment=moment):
                found = await searched(agent, search.search_fuzzy, FuzzyQuery(query, threshold=0.9), *moment)
                assert set(names(found)) == expected
    found = await searched(agent, search.search_fuzzy, FuzzyQuery("zoe", threshold=0.9, tags=("none",)))
    assert names(found) == []
