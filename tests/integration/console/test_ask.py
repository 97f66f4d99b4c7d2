"""Ask: what a recall finds, and all that tells whether it is right."""

import json
import re
import shlex
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.memories import Agent

HOSTILE = "<script>alert(1)</script> drinks tea"


@pytest.fixture
async def visitor(
    gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    """A reader of a tenant whose graph knows who drinks what, and of a habit that another one replaced."""
    agent = Agent(db, caller)
    (coffee,) = await agent.remember(NewMemory("Ada drinks coffee in the morning", about=("Ada",), kind="habit"))
    await agent.remember(
        NewMemory("Ada drinks green tea in the morning", about=("Ada",), supersedes=(coffee.id,), tags=("taste",)),
        NewMemory(HOSTILE, about=("Mallory",), importance=8.0, thread="standup"),
        NewMemory("The deployment runs on Tuesdays", about=("Recollect",)),
    )
    async with visiting(gateway, databases, settings, caller, Role.READER) as visitor:
        yield visitor


def found_texts(page: Page) -> list[str]:
    return [" ".join(element.text.split()) for element in page.all("li", class_="hit stack tight")]


async def test_a_memory_is_found_with_what_tells_whether_it_is_right(visitor: Visitor) -> None:
    page = await visitor.open("ask", q="What tea does Ada drink in the morning?", outdated="yes")
    hits = found_texts(page)
    assert any("Ada drinks green tea" in hit for hit in hits)
    assert {"drinks", "tea", "morning"} <= {element.text for element in page.all("mark")}
    old = next(hit for hit in hits if "coffee" in hit)
    assert "superseded" in old
    assert "coffee" in "".join(element.text for element in page.all("s"))
    replacing = await visitor.open_address(page.links()["What replaced it"])
    assert "Ada drinks green tea" in replacing.text
    assert page.all("time")
    assert [element for element in page.all("rect") if "style" in element.attributes] == []
    assert [element.text for element in page.all("script") if not element.attributes.get("src")] == []


async def test_the_parts_of_a_score_add_up_to_it(visitor: Visitor) -> None:
    page = await visitor.open("ask", q="deployment on Tuesdays")
    hit = next(hit for hit in found_texts(page) if "deployment" in hit)
    score = float(re.search(r"Score (\d\.\d+)", hit)[1])  # type: ignore[index]
    terms = [float(value) for value in re.findall(r"[a-z] (\d\.\d{3})", hit.partition("Score")[2])]
    assert score == pytest.approx(sum(terms), abs=0.02)


async def test_filters_are_in_the_address_and_without_a_question_they_list(visitor: Visitor) -> None:
    for filters, expected in (
        ({"tag": "taste"}, ["green tea"]),
        ({"kind": "rule, habit"}, ["green tea"]),
        ({"thread": "standup"}, [HOSTILE]),
        ({"importance": "7"}, [HOSTILE]),
        ({"tag": "taste", "until": "2020-01-01"}, []),
    ):
        texts = found_texts(await visitor.open_address(visitor.path(f"ask?{urlencode(filters)}")))
        assert len(texts) == len(expected), filters
        assert all(part in text for part, text in zip(expected, texts, strict=True)), filters
    for name, value in (("since", "yesterday"), ("importance", "11")):
        page = await visitor.open_address(visitor.path(f"ask?q=Ada&{name}={value}"), status=400)
        assert page.all("div", role="alert"), name
        assert page.form("ask").fields["q"] == "Ada"


async def test_the_call_is_shown_as_code_that_works(visitor: Visitor) -> None:
    page = await visitor.open("ask", q="What's for Ada?", tag="taste")
    mcp, curl, python = (page.all("code", id=f"code-{number}")[0].text for number in (1, 2, 3))
    call = json.loads(mcp)
    assert call["params"]["name"] == "recall"
    assert call["params"]["arguments"]["tags"] == ["taste"]
    words = shlex.split(curl.replace("\\\n", " "))
    sent = json.loads(words[words.index("-d") + 1])
    assert sent["query"] == "What's for Ada?"
    compile(python, "python", "exec")


async def test_the_past_is_asked_as_it_was(visitor: Visitor) -> None:
    page = await visitor.open("ask", q="What does Ada drink in the morning?", as_of="1")
    assert ["coffee" in hit for hit in found_texts(page)] == [True]
    assert "as_of=1" in page.links()["Ada"]
    assert "Viewing" in page.text


async def test_what_is_not_known_and_what_is_asked_for_first(visitor: Visitor) -> None:
    assert "What do the agents know?" in (await visitor.open("ask")).text
    assert found_texts(await visitor.open("ask", q="Ada", kind="no such kind")) == []
    part = await visitor.part("ask", "results", q="tea")
    assert part.all("html") == []
    assert part.all("mark")
    await visitor.open("ask", graph="nowhere", status=404, q="tea")
