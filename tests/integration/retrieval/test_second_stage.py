"""The second stage of recall: the evidence that the worker stores for it, and how it ranks."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from functools import cache

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.embedding import Embedder
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import service as passages
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.recall.ranking_weights import WEIGHTS, WEIGHTS_WITHOUT_TOKENS
from tests.conftest import NewTenant
from tests.integration.retrieval.test_recall import rebuild_passages
from tests.support.embedders import loaded_minilm
from tests.support.memories import Agent, at_work, embedder

QUESTION = "Who steered the vessel?"
TALK = [
    ("Was anybody at the helm of the boat?", 3),
    ("Only Mira was, last Saturday.", 4),
    ("The garden needs rain, and so do the beans.", 5),
    ("My tax papers are due in two weeks.", 6),
]
"""What was said in a thread, and on which day of May 2026."""


@cache
def with_tokens() -> Embedder:
    """An embedder that returns token bits. It is loaded once in a run."""
    return loaded_minilm()


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


@pytest.fixture
async def talk(agent: Agent) -> Agent:
    """An agent whose talk was embedded with token bits."""
    await agent.remember(
        *(NewMemory(text, thread="boat", at=datetime(2026, 5, day, 12, tzinfo=UTC)) for text, day in TALK)
    )
    assert await agent.embed(with_tokens()) == len(TALK)
    return agent


async def hits(agent: Agent, text: str, by: Embedder, as_of: datetime | None = None) -> list[Hit]:
    """What a question finds if it is embedded by that embedder, best first."""
    questions = await QuestionEncoder(by).questions(agent.caller, [text])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None, as_of)
        return (await recall.recall(view, questions, RecallFilter(), limit=10, token_budget=1_000)).hits


async def test_the_worker_stores_token_bits_and_mentioned_days(talk: Agent, owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT p.text, e.model, e.tokens, e.dates FROM passage_evidence e JOIN passages p ON p.id = e.passage_id "
        "WHERE e.tenant_id = $1 ORDER BY p.said_at",
        talk.caller.tenant_id,
    )
    embedded = await loaded_minilm().embed_passages([text for text, _ in TALK])
    assert [(row["text"], row["model"]) for row in rows] == [(text, with_tokens().model) for text, _ in TALK]
    assert [row["tokens"] for row in rows] == [bits.tobytes() for bits in embedded.tokens]
    days = [[(told.lower, told.upper) for told in row["dates"]] for row in rows]
    assert days == [[], [(date(2026, 5, 2), date(2026, 5, 3))], [], [(date(2026, 5, 17), date(2026, 5, 24))]]


async def test_a_question_is_compared_token_by_token_with_a_passage_and_its_neighbours(talk: Agent) -> None:
    found = await hits(talk, QUESTION, with_tokens())
    assert [hit.text for hit in found[:2]] == [TALK[0][0], TALK[1][0]]
    assert all(hit.terms.keys() == WEIGHTS.keys() for hit in found)
    assert found[0].terms["win"] == 1, "though no word of it is the question's"


@pytest.mark.parametrize("gone", ["DELETE FROM passage_evidence", "UPDATE passage_evidence SET generation = 0"])
async def test_recall_ranks_by_words_if_there_are_no_token_bits(
    talk: Agent, owner: asyncpg.Connection, gone: str
) -> None:
    """Until the worker has made them, and while those that exist were made by other rules."""
    await owner.execute(f"{gone} WHERE tenant_id = $1", talk.caller.tenant_id)
    found = await hits(talk, "Who was at the helm of the boat?", with_tokens())
    assert {hit.text for hit in found} >= {TALK[0][0], TALK[1][0]}
    assert all(hit.terms.keys() == WEIGHTS_WITHOUT_TOKENS.keys() for hit in found)


async def test_a_new_memory_without_token_bits_is_found_beside_others(talk: Agent) -> None:
    await talk.remember(NewMemory("The harbour master steered the vessel", thread="harbour"))
    found = await hits(talk, QUESTION, with_tokens())
    assert found[0].text == "The harbour master steered the vessel"
    assert found[0].terms["win"] == 1, "its words stand in for its tokens"


async def test_rebuilt_passages_keep_their_evidence(talk: Agent, owner: asyncpg.Connection) -> None:
    await rebuild_passages(talk)
    async with talk.db.transaction(talk.caller) as tx:
        claimed = await passages.claim_pending(tx, model=with_tokens().model, limit=100, lease_seconds=60)
    assert len(claimed) == len(TALK)
    assert all(passage.text is None for passage in claimed), "nothing is embedded again"


async def test_the_worker_makes_token_bits_of_older_passages(talk: Agent, owner: asyncpg.Connection) -> None:
    """When it comes to them; here after the evidence was deleted. A vector that exists already is not counted again."""
    await owner.execute("DELETE FROM passage_evidence WHERE tenant_id = $1", talk.caller.tenant_id)
    await rebuild_passages(talk)
    assert await talk.embed(with_tokens()) == 0
    assert all("win" in hit.terms for hit in await hits(talk, QUESTION, with_tokens()))


async def test_a_memory_of_the_last_representable_day_is_found(agent: Agent) -> None:
    """The end of its range, as PostgreSQL returns it, is later than Python's calendar can represent."""
    await agent.remember(NewMemory("Ada goes to the lake today", at=datetime(9999, 12, 31, 23, tzinfo=UTC)))
    await agent.embed()
    assert [hit.text for hit in await hits(agent, "Who went to the lake on 28 December?", embedder())]


async def test_letters_that_resemble_a_weekday_do_not_break_the_worker(agent: Agent) -> None:
    await agent.remember("We meet on Fr\u0131day at the lake")
    assert await agent.embed() == 1
    assert [hit.text for hit in await hits(agent, "Who is at the lake on Fr\u0131day?", embedder())]


async def test_a_question_with_a_date_prefers_memories_of_or_about_it(agent: Agent) -> None:
    """With an embedder without tokens, too."""
    said = [datetime(2026, month, 3, 12, tzinfo=UTC) for month in (3, 5, 6)]
    await agent.remember(
        NewMemory("Ada went to the lake to swim", thread="a", at=said[0]),
        NewMemory("Ada went to the lake to fish", thread="b", at=said[1]),
        NewMemory("Ada went to the lake to sail, last month", thread="c", at=said[2]),
    )
    await agent.embed()
    named = {hit.text: hit.terms["date"] for hit in await hits(agent, "Why did Ada go to the lake in May?", embedder())}
    assert named == {
        "Ada went to the lake to fish": 1,
        "Ada went to the lake to sail, last month": 1,
        "Ada went to the lake to swim": 0,
    }
    (first, *_) = await hits(agent, "Why did Ada go to the lake on 3 March 2026?", embedder())
    assert first.text == "Ada went to the lake to swim"


async def test_relative_dates_are_relative_to_now_or_to_as_of(agent: Agent) -> None:
    now = datetime.now(UTC)
    await agent.remember(
        NewMemory("Ada went to the lake to swim", thread="a", at=now - timedelta(days=2)),
        NewMemory("Ada went to the lake to fish", thread="b", at=now + timedelta(days=98)),
    )
    await agent.embed()

    async def named(as_of: datetime | None) -> dict[str, float]:
        question = "Why did Ada go to the lake in the last four days?"
        return {hit.text[-4:]: hit.terms["date"] for hit in await hits(agent, question, embedder(), as_of)}

    assert await named(None) == {"swim": 1, "fish": 0}
    assert await named(now + timedelta(days=100)) == {"swim": 0, "fish": 1}
