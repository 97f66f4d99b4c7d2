"""A turn that answers a question is found by the words of that question."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.integration.retrieval.test_second_stage import hits, with_tokens
from tests.support.memories import Agent, at_work

ASKED = "Mira, which instrument did your brother learn as a child?"
ANSWER = "The cello, and he hated every minute."
REMARK = "Mira told me which brother plays chess."
QUESTION = "Which instrument did Mira's brother learn as a child?"


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


async def tell(agent: Agent, *texts: str, thread: str | None) -> None:
    await agent.remember(
        *(
            NewMemory(text, thread=thread, about=() if thread else ("Mira",), at=datetime(2026, 5, day, tzinfo=UTC))
            for day, text in enumerate(texts, 1)
        )
    )


async def asked_terms(agent: Agent) -> dict[str, float]:
    return {hit.text: hit.terms["asked"] for hit in await hits(agent, QUESTION, with_tokens())}


async def test_the_turn_after_a_question_is_ranked_by_the_words_of_that_question(agent: Agent) -> None:
    await tell(agent, ASKED, ANSWER, thread="family")
    await tell(agent, "It rains.", REMARK, thread="chess")
    await agent.embed(with_tokens())
    terms = await asked_terms(agent)
    assert terms[ANSWER] > 0.7
    assert terms[ASKED] == terms[REMARK] == 0


async def test_a_turn_after_a_statement_gets_nothing_from_it(agent: Agent) -> None:
    await tell(agent, ASKED.replace("?", "."), ANSWER, thread="family")
    await agent.embed(with_tokens())
    assert set((await asked_terms(agent)).values()) == {0}


async def test_facts_of_one_entity_do_not_answer_each_other(agent: Agent) -> None:
    """They were told at different times, and in no thread."""
    await tell(agent, ASKED, ANSWER, thread=None)
    await agent.embed(with_tokens())
    assert set((await asked_terms(agent)).values()) == {0}
