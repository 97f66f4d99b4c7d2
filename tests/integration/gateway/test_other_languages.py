"""The embedder `multilingual`: a question in any language finds what was told in any other."""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.integration.gateway.test_management import done
from tests.support.embedders import loaded_multilingual
from tests.support.gateway import RunningGateway, serving
from tests.support.memories import Agent, at_work

TOLD = [
    "The ferry to the island was cancelled because of the storm.",
    "The piano in the hall is tuned every spring.",
    "Unser Hund schläft am liebsten unter dem Küchentisch.",
    "会议改到了星期五下午。",
    "Klucz do piwnicy leży pod doniczką.",
    "The bakery on the corner closes at noon on Saturdays.",
    "हमारी बेटी युवा मंडली में वायलिन बजाती है।",
]

ASKED = {
    "Warum fuhr das Schiff nicht?": TOLD[0],
    "¿Por qué no salió el barco?": TOLD[0],
    "Where does the dog like to sleep?": TOLD[2],
    "When is the meeting?": TOLD[3],
    "Wann findet die Besprechung statt?": TOLD[3],
    "Where is the key to the cellar?": TOLD[4],
    "Où dort le chien ?": TOLD[2],
    "How often is the instrument in the hall tuned?": TOLD[1],
    "बेटी क्या बजाती है?": TOLD[6],
}


@pytest.fixture(scope="module")
def gateway(settings: Settings) -> Iterator[RunningGateway]:
    with serving(settings.model_copy(update={"embedder": "multilingual"})) as gateway:
        yield gateway


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        await done(http, "POST", "/v1/graphs/default/memories", items=[{"text": text} for text in TOLD])
        yield http


async def test_a_question_finds_its_answer_in_another_language(
    http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for question, answer in ASKED.items():
        with subtests.test(question):
            found = await done(http, "POST", "/v1/graphs/default/recall", query=question)
            assert found["memories"][0]["text"] == answer


OF_THE_OFFICE = [
    f"{what} {where}"
    for what in (
        "Die Kaffeemaschine steht",
        "Der Drucker steht",
        "Frau Lindner arbeitet",
        "Die Rechnungen liegen",
        "Das Seminar beginnt",
        "Ein Paket wartet",
        "Der Vertrag liegt",
        "Die Blumen stehen",
    )
    for where in (
        "im ersten Stock.",
        "neben der Treppe.",
        "im kleinen Saal.",
        "am Empfang.",
        "bei Herrn Vogel.",
        "im Keller.",
        "gegenüber der Küche.",
        "hinter dem Archiv.",
    )
]


async def test_a_memory_in_english_is_found_among_many_in_the_language_of_the_question(
    gateway: RunningGateway, key: str, subtests: pytest.Subtests
) -> None:
    """The vector of an English memory has two halves, of which a question in German is compared with one."""
    asked = {"Warum fuhr das Schiff nicht?": TOLD[0], "Wann schließt der Bäcker am Samstag?": TOLD[5]}
    async with gateway.http(key) as http:
        for texts in (OF_THE_OFFICE, list(asked.values())):
            await done(http, "POST", "/v1/graphs/office/memories", items=[{"text": text} for text in texts])
        for question, answer in asked.items():
            for only in ({}, {"not_tags": ["draft"]}):
                with subtests.test(question, only=only):
                    found = await done(http, "POST", "/v1/graphs/office/recall", query=question, **only)
                    assert found["memories"][0]["text"] == answer


async def test_in_other_languages_what_is_meant_comes_before_what_has_the_words(
    gateway: RunningGateway, key: str, subtests: pytest.Subtests
) -> None:
    texts = [
        "Unser Auto steht seit gestern in der Werkstatt.",
        "Wir reparieren den Zaun erst im Herbst, wenn der Garten ruht.",
        "Nuestro hijo toca la trompeta en la banda del pueblo.",
        "El niño del vecino aprendió a nadar en la piscina.",
    ]
    asked = {
        "Wann bekommen wir den Wagen aus der Reparatur zurück?": texts[0],
        "¿Qué instrumento aprendió el niño?": texts[2],
    }
    async with gateway.http(key) as http:
        await done(http, "POST", "/v1/graphs/meant/memories", items=[{"text": text} for text in texts])
        for question, answer in asked.items():
            with subtests.test(question):
                found = await done(http, "POST", "/v1/graphs/meant/recall", query=question)
                assert found["memories"][0]["text"] == answer


async def test_a_question_in_english_finds_memories_where_none_is(
    gateway: RunningGateway, key: str, subtests: pytest.Subtests
) -> None:
    """Then no passage has tokens, and a share of the cosines within English is enough all the same."""
    async with gateway.http(key) as http:
        texts = [text for text in TOLD if text not in (TOLD[0], TOLD[1], TOLD[5])]
        await done(http, "POST", "/v1/graphs/abroad/memories", items=[{"text": text} for text in texts])
        for question, answer in ASKED.items():
            if answer in texts and question.startswith("Whe"):
                with subtests.test(question):
                    found = await done(http, "POST", "/v1/graphs/abroad/recall", query=question)
                    assert found["memories"][0]["text"] == answer


async def test_only_passages_in_english_have_tokens_by_worker_and_at_once(
    http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller, db: Database
) -> None:
    query = """SELECT p.text, e.tokens IS NOT NULL FROM passages p JOIN passage_evidence e ON e.passage_id = p.id
        WHERE p.tenant_id = $1"""
    expected = {text: text.startswith("The ") for text in TOLD}
    assert dict(map(tuple, await owner.fetch(query, caller.tenant_id))) == expected
    async with at_work(db, caller) as agent:
        await reembedded(agent, owner)
        assert dict(map(tuple, await owner.fetch(query, caller.tenant_id))) == expected


async def reembedded(agent: Agent, owner: asyncpg.Connection) -> None:
    """Forget what was made of the passages, and let a worker make it."""
    for table in ("passage_evidence", "passage_vectors"):
        await owner.execute(f"DELETE FROM {table} WHERE tenant_id = $1", agent.caller.tenant_id)
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", agent.caller.tenant_id)
    assert await agent.embed(loaded_multilingual()) == len(TOLD)
