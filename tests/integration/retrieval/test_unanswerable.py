"""Questions that nothing answers get nothing, by what cosines are worth for each question."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.embedding import Embedder, MiniLMEmbedder
from recollect.graph.graphs import service as graphs
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.questions import QuestionEncoder
from tests.conftest import NewTenant
from tests.support.embedders import loaded_minilm, loaded_multilingual
from tests.support.memories import Agent, at_work

BEES = "The user keeps bees behind the summer house."
TYPING = "Writes TypeScript without any."
PATTERN = "Prefers composition over inheritance, and functions that never ask for what they can be told."
MEMORIES = [
    BEES,
    "Support hours are eight to six, Central European Time.",
    "Jonas Weiss negotiated the contract with the cloud provider.",
    "All times in the database are stored in UTC.",
    "The warehouse scanner needs firmware 4.2 or newer.",
]


@pytest.fixture
def embedder() -> MiniLMEmbedder:
    return loaded_minilm()


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant, embedder: MiniLMEmbedder) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*(NewMemory(text) for text in MEMORIES))
        await agent.remember(*(NewMemory(text, tags=("code",)) for text in (TYPING, PATTERN)))
        await agent.embed(embedder)
        yield agent


async def _found(agent: Agent, embedder: Embedder, question: str, filters: RecallFilter) -> list[str]:
    questions = await QuestionEncoder(embedder).questions(agent.caller, [question])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None, None)
        found = await recall.recall(view, questions, filters, limit=10, token_budget=1_000, only_near_best=True)
        return [hit.text for hit in found.hits]


async def test_what_a_question_needs_depends_on_how_near_it_is_to_anything(
    agent: Agent, embedder: MiniLMEmbedder, subtests: pytest.Subtests
) -> None:
    """Both cosines lie near .3; but what is about a user is near to the first question, and little to the second."""
    cases: dict[str, list[str]] = {"What is the name of the user's neighbour?": [], "Any hives nearby?": [BEES]}
    for question, found in cases.items():
        with subtests.test(question):
            assert await _found(agent, embedder, question, RecallFilter()) == found


async def test_most_of_the_words_are_no_answer_if_they_mean_something_else(
    agent: Agent, embedder: MiniLMEmbedder, subtests: pytest.Subtests
) -> None:
    """Under a filter, too: who says where to look knows that something is there, but not that it answers this."""
    for filters in (RecallFilter(), RecallFilter(tags=("code",))):
        with subtests.test(tags=filters.tags):
            assert await _found(agent, embedder, "Did she ask what the police told?", filters) == []
    assert await _found(agent, embedder, "Should I ask, or be told?", RecallFilter(tags=("code",))) == [PATTERN]


async def test_a_filter_does_not_make_an_answer_of_what_is_hardly_near(db: Database, new_tenant: NewTenant) -> None:
    """The best of few memories is soon a little near: here with a cosine of .21 (`multilingual`)."""
    orders = "Orders arrive as events through Kafka, with Avro schemas."
    tagged, embedder = RecallFilter(tags=("work",)), loaded_multilingual()
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(NewMemory(orders, tags=("work",)))
        await agent.embed(embedder)
        assert await _found(agent, embedder, "kubernetes ingress rules", tagged) == []
        assert await _found(agent, embedder, "How do events about orders come in?", tagged) == [orders]
