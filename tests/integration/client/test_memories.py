"""Remember and recall by the Python client, against the gateway."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from recollect.caller import Caller
from recollect_client import (
    AsyncRecollect,
    ForbiddenError,
    InvalidInputError,
    Item,
    Memory,
    Message,
    Recollect,
    UnauthenticatedError,
    UnexpectedAnswerError,
)
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.web_server import plain, web_server

SAID_AT = datetime(2026, 1, 31, 10, tzinfo=timezone(timedelta(hours=1)))


async def test_a_remembered_memory_is_recalled_by_both_clients(client: Recollect, aclient: AsyncRecollect) -> None:
    [stored] = client.remember("likes tea", about="Ada", thread="chat", at=SAID_AT, tags=["taste"], metadata={"n": 1})
    assert (stored.status, stored.close) == ("new", [])
    [again] = await aclient.remember("likes tea", about=["Ada"], thread="chat")
    assert (again.id, again.status) == (stored.id, "known")
    for recalled in (
        client.recall("Who likes tea?", explain=True),
        await aclient.recall("Who likes tea?", explain=True),
    ):
        [found] = recalled
        assert (found.id, found.node, found.name, found.text) == (stored.id, stored.node, "Ada", "likes tea")
        assert (found.at, found.tags, found.metadata) == (SAID_AT, ["taste"], {"n": 1})
        assert (recalled.more, bool(found.why), len(recalled)) == (False, True, 1)


async def test_what_an_item_says_goes_before_what_is_said_for_all(client: Recollect) -> None:
    items: list[Item] = [
        "Bees make honey",
        Memory(text="Wasps do not", tags=["wasps"]),
        {"text": "Ants dig", "importance": 9},
    ]
    assert [each.status for each in client.remember(items, tags="insects", importance=2)] == ["new"] * 3
    found = {each.text: each for each in client.memories(tags=["insects", "wasps"])}
    assert (found["Bees make honey"].tags, found["Bees make honey"].importance) == (["insects"], 2)
    assert found["Wasps do not"].tags == ["wasps"]
    assert (found["Ants dig"].tags, found["Ants dig"].importance) == (["insects"], 9)


async def test_a_new_memory_supersedes_others(client: Recollect) -> None:
    [old] = client.remember("The office is in Bonn", at=datetime(2026, 1, 1, tzinfo=UTC))
    client.remember("The office is in Ulm", supersedes=old.id)
    assert [each.text for each in client.recall("Where is the office?")] == ["The office is in Ulm"]


async def test_graphs_are_bound_or_named_by_a_call(client: Recollect) -> None:
    client.remember("Rust is a language", graph="work")
    work = client.graph("work")
    assert len(work.recall("language")) == len(client.recall("language", graph="work")) == 1
    assert not client.recall("language")
    assert str(client.recall("language", graph="nowhere").note).startswith("There is no such graph")


async def test_lists_of_memories_go_on_to_the_last_page(client: Recollect, aclient: AsyncRecollect) -> None:
    texts = {f"Fact number {number}" for number in range(120)}
    for half in (sorted(texts)[:60], sorted(texts)[60:]):
        client.remember(half, tags="numbered")
    assert {each.text for each in client.memories(tags="numbered")} == texts
    assert {each.text async for each in aclient.memories(tags="numbered")} == texts


async def test_a_refusal_names_the_place(client: Recollect) -> None:
    with pytest.raises(InvalidInputError) as refused:
        client.remember(["Bees make honey", ""])
    assert (refused.value.status, refused.value.code) == (400, "invalid_input")
    assert str(refused.value.path).startswith("items.1.text")
    with pytest.raises(InvalidInputError, match="query"):
        client.recall()


async def test_a_wrong_key_and_one_that_may_only_read(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller
) -> None:
    with Recollect(gateway.url, api_key="rcl_wrong") as client, pytest.raises(UnauthenticatedError):
        client.recall("tea")
    reading = await issue(caller, scopes=["memory:read"])
    with Recollect(gateway.url, api_key=reading.secret) as client:
        assert len(client.recall("tea")) == 0
        with pytest.raises(ForbiddenError) as refused:
            client.remember("Bees make honey")
    assert refused.value.code == "scope_required"


async def test_a_function_tells_the_token_for_each_request(gateway: RunningGateway, key: str) -> None:
    told = list[str]()

    def token() -> str:
        told.append("asked")
        return key

    async def token_later() -> str:
        return token()

    with Recollect(gateway.url, access_token=token) as client:
        client.recall("tea")
    for function in (token, token_later):
        async with AsyncRecollect(gateway.url, access_token=function) as aclient:
            await aclient.recall("tea")
            await aclient.recall("tea")
    assert len(told) == 5


async def test_what_is_no_gateway_is_recognised() -> None:
    async with (
        web_server(plain(b"<html>Welcome", "Content-Type: text/html")) as server,
        AsyncRecollect(f"http://127.0.0.1:{server.port}", api_key="rcl_key") as client,
    ):
        with pytest.raises(UnexpectedAnswerError, match="did not answer as a Recollect gateway"):
            await client.recall("tea")


async def test_a_conversation_is_kept_once_and_grows(client: Recollect, aclient: AsyncRecollect) -> None:
    first = Message(role="user", name="Ada", content="I moved to Ulm", at=datetime(2026, 11, 2, 10, tzinfo=UTC))
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Shall I change your address?"}]}
    kept = client.remember_conversation("support-1", [first, answer], tags="moves")
    assert [(memory.message, memory.status) for memory in kept.memories] == [(0, "new"), (1, "new")]
    grown = await aclient.remember_conversation("support-1", [first, answer, Message(role="user", content="Yes")])
    assert [memory.status for memory in grown.memories] == ["known", "known", "new"]
    [found] = client.recall("Where did Ada move?", limit=1)
    assert (found.text, found.tags, found.at) == ("Ada: I moved to Ulm", ["moves"], first.at)
    assert client.remember_conversation("notes", "User: hi\nAssistant: hello").left_out == []
