"""A revision says on which version it is based; if that is not the newest, it is a conflict and writes nothing."""

import asyncio
from typing import Any

import pytest
from mcp import Client

from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, answer, refused, revision_of, text_of


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


@pytest.fixture(params=["fact", "observation", "entity"])
async def target(request: pytest.FixtureRequest, client: Client) -> dict[str, str]:
    """What `revise` takes to name a memory: a fact, an observation, or an entity with a text of its own."""
    if request.param == "entity":
        entity = {"name": "Ada", "entityType": "person", "observations": [], "content": "likes tea, says the file"}
        await answer(client, "create_entities", entities=[entity])
        return {"name": "Ada"}
    about = ["Ada"] if request.param == "observation" else []
    remembered = await answer(client, "remember", items=[{"text": "likes tea, says the file", "about": about}])
    return {"id": remembered["memories"][0]["id"]}


async def version_told(client: Client) -> Any:
    [memory] = (await answer(client, "recall", query="Who likes what, says the file?"))["memories"]
    return memory["version"], memory["text"]


async def test_of_ten_at_once_one_is_written(
    client: Client, target: dict[str, str], db: Database, caller: Caller
) -> None:
    assert await version_told(client) == (1, "likes tea, says the file")
    before = await revision_of(db, caller)
    texts = [f"likes cake {number}, says the file" for number in range(10)]
    results = await asyncio.gather(
        *(answer(client, "revise", text=text, based_on_version=1, **target) for text in texts)
    )
    outcomes = dict(zip(texts, results, strict=True))
    [written] = [text for text, result in outcomes.items() if result["status"] == "revised"]
    assert outcomes.pop(written)["version"] == 2
    assert {result["status"] for result in outcomes.values()} == {"conflict"}
    for text, result in outcomes.items():
        assert (result["version"], result["text"], result["conflict"]) == (2, written, [text])
    assert await version_told(client) == (2, written)
    assert await revision_of(db, caller) == before + 1


async def test_the_newest_version_is_revised_and_an_unknown_one_refused(client: Client, target: dict[str, str]) -> None:
    for version in (1, 2, 3):
        text = f"likes cake {version}, says the file"
        revised = await answer(client, "revise", text=text, based_on_version=version, **target)
        assert (revised["status"], revised["version"]) == ("revised", version + 1)
    code, message = await refused(client, "revise", text="x", based_on_version=5, **target)
    assert (code, message) == ("invalid_input", "based_on_version: It has versions 1 to 4")
    assert await version_told(client) == (4, "likes cake 3, says the file")


async def test_a_repeated_revision_is_no_conflict(client: Client, target: dict[str, str]) -> None:
    arguments = {"text": "likes cake, says the file", "based_on_version": 1, **target}
    assert (await answer(client, "revise", **arguments))["status"] == "revised"
    assert (await answer(client, "revise", **arguments))["status"] == "unchanged"


async def test_without_a_base_the_last_one_wins(client: Client, target: dict[str, str]) -> None:
    for number in (2, 3):
        revised = await answer(client, "revise", text=f"likes cake {number}, says the file", **target)
        assert (revised["status"], revised["version"]) == ("revised", number)


async def test_other_changes_conflict_too(client: Client, target: dict[str, str]) -> None:
    await answer(client, "revise", importance=3, **target)
    result = await client.call_tool("revise", {"tags": ["late"], "based_on_version": 1, **target})
    assert (result.structured_content or {})["status"] == "conflict"
    assert "conflict" not in (result.structured_content or {})
    assert text_of(result).endswith("(version 2 is the newest; revise that): likes tea, says the file")


async def test_the_texts_tell_both(client: Client, target: dict[str, str]) -> None:
    await answer(client, "revise", text="likes cake, says the file", **target)
    result = await client.call_tool("revise", {"text": "likes pie", "based_on_version": 1, **target})
    first, second = text_of(result).splitlines()
    assert first.endswith("(version 2 is the newest; revise that): likes cake, says the file")
    assert second == "  not written: likes pie"
    recalled = await client.call_tool("recall", {"query": "Who likes cake, says the file?"})
    assert ", version 2) [" in str(recalled.content[0])


async def test_a_manual_graph_records_a_sibling_of_a_node_and_none_of_an_observation(client: Client) -> None:
    await answer(client, "create_graph", name="notes", conflict_policy="manual")
    items = [{"text": "it rained"}, {"text": "likes tea", "about": ["Ada"]}]
    remembered = await answer(client, "remember", graph="notes", items=items)
    fact, said = (memory["id"] for memory in remembered["memories"])
    for id_ in (fact, said):
        await answer(client, "revise", graph="notes", id=id_, text="theirs", based_on_version=1)
    beside = await answer(client, "revise", graph="notes", id=fact, text="ours", based_on_version=1)
    assert (beside["status"], beside["text"], beside["conflict"]) == ("conflict", "ours", ["theirs"])
    refused_ = await answer(client, "revise", graph="notes", id=said, text="ours", based_on_version=1)
    assert (refused_["status"], refused_["text"], refused_["conflict"]) == ("conflict", "theirs", ["ours"])


async def test_explore_tells_versions(client: Client) -> None:
    await answer(client, "remember", items=[{"text": "likes tea", "about": ["Ada"]}])
    await answer(client, "revise", name="Ada", importance=3)
    [ada] = (await answer(client, "explore", start="Ada"))["nodes"]
    revised = await answer(client, "revise", name="Ada", importance=4, based_on_version=ada["version"])
    assert (ada["version"], revised["status"]) == (2, "revised")


async def test_each_change_of_an_observation_counts(client: Client) -> None:
    [memory] = (await answer(client, "remember", items=[{"text": "likes tea", "about": ["Ada"]}]))["memories"]
    await answer(client, "remember", items=[{"text": "likes tea", "about": ["Ada"], "importance": 3}])
    await answer(client, "forget", ids=[memory["id"]])
    await answer(client, "forget", ids=[memory["id"]])
    revised = await answer(client, "revise", id=memory["id"], status="active", based_on_version=3)
    assert (revised["status"], revised["version"]) == ("revised", 4)
