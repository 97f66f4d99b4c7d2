"""The ranked search finds words in the forms in which recall finds them, in every script."""

import math
from collections.abc import AsyncIterator

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.retrieval.search import service as search
from recollect.retrieval.search import store
from recollect.retrieval.search.model import RankedQuery
from tests.conftest import NewTenant
from tests.integration.retrieval.test_classic_searches import searched
from tests.support.memories import Agent, at_work

SAID = {
    "Dogs": "the dogs were running",
    "Munoz": "Señora Muñoz mag die Straße",
    "Cafe": "cafe\u0301 au lait",
    "Seoul": "수급자에게 서울에서 알림을 보냈다",
    "Bangkok": "ประชุมที่กรุงเทพมหานครวันจันทร์",
    "Tokyo": "東京都庁で会議があります",
    "Book": "كتبنا الكتاب الجديد",
    "Moscow": "Мы начали переговоры с поставщиком",
    "Wide": "Ｐｒｏｊｅｃｔ starts",
}
ASKED = {
    "dog": "Dogs",
    "run": "Dogs",
    "munoz": "Munoz",
    "STRASSE": "Munoz",
    "cafe": "Cafe",
    "서울": "Seoul",
    "กรุงเทพ": "Bangkok",
    "会議": "Tokyo",
    "كتاب": "Book",
    "переговорах": "Moscow",
    "project": "Wide",
}


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(*(NewEntity(name, "thing", (text,)) for name, text in SAID.items()))
        await agent.create(*(NewEntity(f"Other {n}", "thing", ("it was cold",)) for n in range(3)))
        yield agent


async def test_words_are_found_in_all_their_forms_now_and_in_the_past(agent: Agent, subtests: pytest.Subtests) -> None:
    for query, name in ASKED.items():
        for moment in ((), ("1",)):
            with subtests.test(query, moment=moment):
                hits = (await searched(agent, search.search_ranked, RankedQuery(query), *moment)).hits
                assert [hit.entity.name for hit in hits if hit.score > 0] == [name]
                assert hits[0].in_observations == (SAID[name],)


async def test_each_form_of_a_word_counts_as_the_word(agent: Agent) -> None:
    [hit] = (await searched(agent, search.search_ranked, RankedQuery("dog"))).hits
    assert hit.score == pytest.approx(2 / 6 * math.log(12))  # Its name, its kind and four words; twice the dog.


async def test_a_word_that_begins_like_another_is_another(agent: Agent) -> None:
    assert (await searched(agent, search.search_ranked, RankedQuery("run do"))).hits[0].entity.name == "Dogs"
    assert (await searched(agent, search.search_ranked, RankedQuery("begin"))).hits == []


async def test_other_forms_are_found_beside_many_passages_with_the_word(
    db: Database, new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SAMPLED", 3)
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(*(NewEntity(f"Note {n}", "thing", (f"the dog number {n}",)) for n in range(20)))
        await agent.create(NewEntity("Last", "thing", ("two dogs",)), NewEntity("None", "thing"))
        hits = (await searched(agent, search.search_ranked, RankedQuery("dog", limit=50))).hits
    assert len(hits) == 21
