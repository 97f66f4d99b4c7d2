"""Questions without words, such as emoji and punctuation: they match by their own characters, or find nothing.

And a word to which an emoji is stuck."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.embedding import Embedder
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.questions import QuestionEncoder
from tests.conftest import NewTenant
from tests.support.embedders import loaded_embedder
from tests.support.memories import Agent, at_work

MEMORIES = [
    "会議は水曜日の午後三時に始まります。",
    "用户的猫叫咪咪，三岁了。",
    "사용자는 부산에 산다.",
    "The user lives in Bergen.",
    "Release done 🎉 thanks to all",
    "Deploys run on Fridays!",
    "✅Called Zbigniew🏆 about the yacht",
]
PARTY = MEMORIES[4]

CALL = MEMORIES[6]

FINDING = {"🎉": [PARTY], "🎉?": [PARTY], "🏆": [CALL]}
EMPTY = ["🔥", "🔥🔥 ?", "👩‍👩‍👧", "🇯🇵", "???", "。。。", "…", "—", "!", "(?)"]
UNKNOWN = ["𐤀𐤁𐤂", "ᏣᎳᎩ"]


@pytest.fixture(params=["wordllama", "minilm", "multilingual"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "wordllama":
        pytest.importorskip("wordllama")
    return loaded_embedder(request.param)


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant, embedder: Embedder) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*MEMORIES)
        await agent.embed(embedder)
        yield agent


async def found(agent: Agent, embedder: Embedder, question: str) -> list[str]:
    questions = await QuestionEncoder(embedder).questions(agent.caller, [question])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None, None)
        answer = await recall.recall(view, questions, RecallFilter(), limit=10, token_budget=1_000)
        return [hit.text for hit in answer.hits]


async def test_questions_without_words_match_by_their_characters_alone(
    agent: Agent, embedder: Embedder, subtests: pytest.Subtests
) -> None:
    asked = FINDING | {question: [] for question in (*EMPTY, *UNKNOWN)}
    for question, texts in asked.items():
        with subtests.test(question):
            assert await found(agent, embedder, question) == texts


async def test_a_word_is_found_without_the_emoji_that_are_stuck_to_it(agent: Agent, embedder: Embedder) -> None:
    assert (await found(agent, embedder, "Zbigniew"))[:1] == [CALL]
    assert (await found(agent, embedder, "Who was called?"))[:1] == [CALL]
