"""Pages of the documentation that are made from the code."""

import re
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from recollect_cli.reference.examples import EXAMPLES, ID
from recollect_cli.reference.glossary import TOOLSETS as DESCRIBED
from recollect_cli.reference.settings import settings_page
from recollect_cli.reference.tools import PAGES, tools_page, toolset_page, unexplained
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLSETS
from tests.support.gateway import RunningGateway

DOCS = Path(__file__).parents[2] / "docs"
UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_every_setting_is_documented() -> None:
    """Regenerate it with: .venv/bin/recollect reference settings > docs/settings.md"""
    assert (DOCS / "settings.md").read_text() == settings_page()


def test_every_tool_is_documented() -> None:
    """Regenerate the pages with: make pages"""
    assert (DOCS / "tools.md").read_text() == tools_page()
    assert {path.stem: path.read_text() for path in (DOCS / "tools").iterdir()} == {
        name: toolset_page(name) for name in PAGES
    }


def test_every_tool_is_described_once_and_listed_in_each_of_its_toolsets() -> None:
    pages = {name: toolset_page(name) for name in PAGES}
    assert frozenset(DESCRIBED) >= TOOLSETS
    assert frozenset(PAGES) == TOOLSETS
    for tool in CATALOGUE:
        [home] = [name for name, page in pages.items() if f"\n## `{tool.name}`\n" in page]
        listing = {name for name, page in pages.items() if f"\n| [`{tool.name}`](" in page}
        assert home in listing
        assert listing == tool.toolsets
        assert f"(tools/{home}.md#{tool.name})" in tools_page()


async def test_the_examples_answer_what_the_pages_say(
    gateway: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    assert set(EXAMPLES) == {tool.name for tool in CATALOGUE if "agent" in tool.toolsets}
    first, began = "", datetime.now(UTC)
    for name, example in EXAMPLES.items():
        arguments = {key: first if value == ID else value for key, value in example.arguments.items()}
        text = (await gateway.call(http, name, arguments, path="/mcp"))["content"][0]["text"]
        first = first or UUID_TEXT.findall(text)[0]
        with subtests.test(name):
            told = UUID_TEXT.sub(ID, text)
            for day in {began.date(), datetime.now(UTC).date()}:
                told = told.replace(str(day), ID)
            assert told == example.text


def test_every_argument_is_explained() -> None:
    """By its description in the schema or, where a model need not read one, by the page's glossary."""
    assert unexplained() == []
