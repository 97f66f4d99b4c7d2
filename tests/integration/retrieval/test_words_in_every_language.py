"""Memories are found by their words alone, in every script: nothing here is embedded."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION, SHORT_QUESTION
from recollect.retrieval.recall.questions import QuestionEncoder
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, count_words, embedder

FACTS = {
    "王小明喜欢绿茶和乒乓球": "王小明喜欢什么",
    "東京都庁で金曜日に会議があります": "会議はいつ",
    "수급자에게 서울에서 알림을 보냈다": "서울 알림",
    "ประชุมที่กรุงเทพมหานครวันจันทร์": "กรุงเทพ",
    "ខ្ញុំរស់នៅភ្នំពេញ": "ភ្នំពេញ",
    "ຂ້ອຍຢູ່ວຽງຈັນ": "ວຽງຈັນ",
    "ရန်ကုန်မြို့မှာနေတယ်": "ရန်ကုန်",
    "Мы начали переговоры с поставщиком": "о переговорах с поставщиком",
    "Die Häuser sind mit dem Garten verkauft": "Was ist mit dem Haus und dem Garten?",
    "Łódź jest zimna": "lodz",
    "كتبنا الكتاب الجديد": "كتاب",
    "Redis缓存过期时间设置为3600秒": "Redis 缓存",
    "Ｐｒｏｊｅｃｔ Ｆａｌｃｏｎ starts": "Project Falcon",
    "Will moved from Leeds to Bath": "Will",
    "IT hands out laptops": "IT",
    "The Who played at the stadium": "The Who",
    "Release v1.26.4-rc2 touched com.example.app.UserService": "1.26.4",
    "parseHttpRequest is slow, says JIRA-4711": "4711",
    "It costs 1,299.99 at docs.example.com": "1299.99",
}

PROMPT = (
    "I have been staring at this screen for two hours, my coffee is cold, and nobody on the third floor answers. The "
    "auditors from Zurich arrive tomorrow morning with a long list of questions about invoices, exports and backups. "
    "My colleague mentioned something over lunch on the terrace, and I had neither pen nor paper with me. "
)


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*FACTS, *(f"Tea number {n} was cold and who knows why" for n in range(60)))
        await agent.remember(*(f"Request {n:05}f{n} of host-{n:02}.example.net failed" for n in range(40)))
        yield agent


async def test_facts_are_found_by_their_words(agent: Agent, subtests: pytest.Subtests) -> None:
    for fact, question in FACTS.items():
        with subtests.test(question, fact=fact):
            assert (await agent.recalled(question))[:1] == [fact]


async def test_facts_are_found_by_their_words_once_words_are_counted(agent: Agent, subtests: pytest.Subtests) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await count_words(tx)
    for fact, question in FACTS.items():
        with subtests.test(question, fact=fact):
            assert (await agent.recalled(question))[:1] == [fact]


async def test_facts_are_found_by_their_words_with_a_filter_and_in_the_past(agent: Agent) -> None:
    for question, fact in (("会議はいつ", "東京都庁で金曜日に会議があります"), ("1.26.4", [*FACTS][16])):
        assert (await agent.recalled(question, status="active"))[:1] == [fact]


async def test_an_identifier_is_found_in_a_prompt_of_any_length(agent: Agent, subtests: pytest.Subtests) -> None:
    asks = "What was the matter with 00007f7 again?"
    for length in (200, 900, 1_500, MAX_QUESTION):
        padding = (PROMPT * 40)[: (length - len(asks)) // 2]
        with subtests.test(str(length)):
            found = await agent.recalled(f"{padding} {asks} {padding}"[:MAX_QUESTION])
            assert found[0] == "Request 00007f7 of host-07.example.net failed"


async def test_an_identifier_is_found_behind_a_thousand_words_that_no_passage_has(agent: Agent) -> None:
    unknown = " ".join(f"qq{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}z" for n in range(1_200))
    found = await agent.recalled(f"{unknown} 00009f9"[-MAX_QUESTION:])
    assert found[0] == "Request 00009f9 of host-09.example.net failed"


async def test_the_error_at_the_end_of_a_long_stack_trace_is_found(db: Database, new_tenant: NewTenant) -> None:
    answer = "A missing customer_id is fixed by running migration 42"
    frames = "".join(
        f'  File "/app/src/qq{n}.py", line {n}, in qq{n}_call\n    return qq{n}_next(x)\n' for n in range(90)
    )
    trace = f"Traceback (most recent call last):\n{frames}KeyError: 'customer_id'\n"
    assert SHORT_QUESTION < len(trace) <= MAX_QUESTION
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(answer, *(f"Paragraph {n} of the contract is about rent" for n in range(100)))
        questions = await QuestionEncoder(embedder()).questions(agent.caller, [trace])
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, agent.graph)
            found = await recall.recall(view, questions, RecallFilter(), limit=10, token_budget=1_500)
    assert [hit.text for hit in found.hits][:1] == [answer]


async def test_the_beginning_of_a_hash_is_enough(agent: Agent) -> None:
    await agent.remember("Commit 3f5a9c1e7bab4455 broke the build")
    assert (await agent.recalled("who wrote 3f5a9c1e"))[:1] == ["Commit 3f5a9c1e7bab4455 broke the build"]


async def test_the_name_of_an_entity_is_found_whatever_word_it_is(db: Database, new_tenant: NewTenant) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*(f"we will do it now, number {n}, and just who can say no" for n in range(200)))
        for name in ("Will", "Do", "Now", "Who", "An"):
            await agent.remember(NewMemory(f"lives at number {name.lower()}x", about=(name,)))
        async with agent.db.transaction(agent.caller) as tx:
            await count_words(tx)
        for name in ("Will", "Do", "Now", "Who", "An"):
            assert (await agent.recalled(name))[:1] == [f"lives at number {name.lower()}x"]


async def test_words_of_the_previous_release_are_found(agent: Agent, owner: asyncpg.Connection) -> None:
    """As it leaves them while both run: by PostgreSQL's English, with the version that is the default."""
    await agent.remember("Beavers were building dams")
    await owner.execute(
        "UPDATE passages SET tsv = to_tsvector('english', text), words_version = 1 WHERE text LIKE 'Beavers%'"
    )
    assert (await agent.recalled("what did the beaver build"))[:1] == ["Beavers were building dams"]
