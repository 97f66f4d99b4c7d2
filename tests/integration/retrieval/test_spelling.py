"""A mistyped word of a question is replaced by the graph's own, where nothing knows it."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.memory import revising
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, count_words, embedded_questions

TOLD = ["The Zambonelli amplifier hums in the attic.", "Vrooman tunes amplifiers.", "Vrooman sells amplifiers."]
ENOUGH = [f"It rains in week {week}." for week in range(5)]
"""As many memories as have to change before words are counted again."""


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*TOLD, *ENOUGH)
        await agent.embed()
        await count(agent)
        yield agent


async def count(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await count_words(tx)


async def corrected(agent: Agent, *texts: str) -> list[str]:
    questions = await embedded_questions(*texts)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, agent.graph)
        found = await recall.recall(view, questions, RecallFilter(), limit=10, token_budget=1_000, correcting=True)
        assert not (found.corrected and found.hits), "nothing is searched for the mistyped question"
        return list(found.corrected)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("Where is the Zambnelli amplifier?", "Where is the zambonelli amplifier?"),
        ("Who tunes amplifeirs?", "Who tunes amplifiers?"),
        ("What does Vroman sell?", "What does vrooman sell?"),
        ("What does Frooman sell?", "What does vrooman sell?"),
    ],
)
async def test_a_mistyped_word_is_corrected_by_the_words_of_the_graph(agent: Agent, asked: str, meant: str) -> None:
    assert await corrected(agent, asked) == [meant]


@pytest.mark.parametrize(
    "asked",
    ["Where is the Zambonelli amplifier?", "Who sells loudspeakers?", "What is a xylophagous beetle?", "Vrxxman?"],
)
async def test_words_that_something_knows_or_nothing_resembles_stay(agent: Agent, asked: str) -> None:
    assert await corrected(agent, asked) == []


async def test_all_questions_of_a_recall_are_returned_where_one_is_mistyped(agent: Agent) -> None:
    assert await corrected(agent, "What hums?", "Who is Vroman?") == ["What hums?", "Who is vrooman?"]


async def test_a_word_that_was_written_since_the_last_count_stays(agent: Agent) -> None:
    await agent.remember("Vroman is the name of a village.")
    assert await corrected(agent, "What is Vroman?") == []


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_words_of_other_graphs_and_tenants_correct_nothing(
    agent: Agent, db: Database, new_tenant: NewTenant
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as other:
        await other.remember("It snows.", *ENOUGH)
        await count(other)
        assert await corrected(other, "Who is Vroman?") == []


async def test_what_was_deleted_corrects_nothing(agent: Agent) -> None:
    """Though its words are still counted."""
    (node,) = [hit.memory_id for hit in (await agent.recall("Zambonelli")).hits if "Zambonelli" in hit.text]
    async with agent.writing() as (tx, revision):
        await revising.delete(tx, revision, node)
    assert await corrected(agent, "Where is Zambnelli?") == []
