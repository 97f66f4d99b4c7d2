"""Two facts alone in a graph, of which the newer tells of a change, and facts that are no answer; with `minilm`."""

from collections.abc import AsyncIterator, Callable

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.embedding import MiniLMEmbedder
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.questions import QuestionEncoder
from tests.conftest import NewTenant
from tests.support.embedders import loaded_minilm
from tests.support.memories import Agent, at_work

CHANGES = {
    "Which version of Django do we use?": ("We use Django 4.2.", "We upgraded to Django 5.1 in October."),
    "What does the team use for chat?": (
        "The team uses Slack for chat.",
        "The team switched from Slack to Zulip for chat.",
    ),
    "Who handles customer support?": ("Jorge handles customer support.", "Mina took over customer support from Jorge."),
}
EVERYTHING = RecallFilter()
HANNA = "Hanna Lindqvist leads the design system and reviews every new component."


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return loaded_minilm()


@pytest.fixture
async def in_graph(db: Database, new_tenant: NewTenant) -> AsyncIterator[Callable[[str], Agent]]:
    caller = operator_caller(await new_tenant())
    async with at_work(db, caller):
        yield lambda graph: Agent(db, caller, graph)


async def found(agent: Agent, embedder: MiniLMEmbedder, question: str, filters: RecallFilter = EVERYTHING) -> list[str]:
    questions = await QuestionEncoder(embedder).questions(agent.caller, [question])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, agent.graph)
        answer = await recall.recall(view, questions, filters, limit=10, token_budget=1_000, only_near_best=True)
        return [hit.text for hit in answer.hits]


async def test_the_newer_of_two_facts_alone_comes_first(
    in_graph: Callable[[str], Agent], embedder: MiniLMEmbedder, subtests: pytest.Subtests
) -> None:
    for number, (question, (old, new)) in enumerate(CHANGES.items()):
        with subtests.test(question):
            agent = in_graph(f"pair-{number}")
            await agent.remember(old)
            await agent.remember(new)
            await agent.embed(embedder)
            assert (await found(agent, embedder, question))[:1] == [new]
            assert (await found(agent, embedder, question.replace("?", " originally?")))[:1] == [old]


async def test_a_fact_without_an_amount_is_no_answer_to_a_question_for_one(
    in_graph: Callable[[str], Agent], embedder: MiniLMEmbedder
) -> None:
    agent = in_graph("hanna")
    await agent.remember(HANNA, "All times in the database are stored in UTC.")
    await agent.embed(embedder)
    assert await found(agent, embedder, "How many children does Hanna have?") == []
    assert await found(agent, embedder, "What does Hanna lead?") == [HANNA]


async def test_an_amount_of_something_else_is_no_answer(
    in_graph: Callable[[str], Agent], embedder: MiniLMEmbedder
) -> None:
    """The year is a number, and the bus is what the question is about."""
    agent, question = in_graph("minibus"), "How many seats does the minibus have?"
    await agent.remember("The minibus was bought in 2019 from a dealer in Graz.", "The choir has 31 singers.")
    await agent.embed(embedder)
    assert await found(agent, embedder, question) == []
    assert await found(agent, embedder, "How old is the minibus?") == [
        "The minibus was bought in 2019 from a dealer in Graz."
    ]
    await agent.remember("The minibus takes nine passengers.")
    await agent.embed(embedder)
    assert (await found(agent, embedder, question))[:1] == ["The minibus takes nine passengers."]
