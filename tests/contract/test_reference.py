"""Pages of the documentation that are made from the code."""

from pathlib import Path

from recollect_cli.reference.glossary import TOOLSETS as DESCRIBED
from recollect_cli.reference.settings import settings_page
from recollect_cli.reference.tools import tools_page, unexplained
from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE, TOOLSETS

DOCS = Path(__file__).parents[2] / "docs"


def test_every_setting_is_documented() -> None:
    """Regenerate it with: .venv/bin/recollect reference settings > docs/settings.md"""
    assert (DOCS / "settings.md").read_text() == settings_page()


def test_every_tool_is_documented() -> None:
    """Regenerate it with: .venv/bin/recollect reference tools > docs/tools.md"""
    assert (DOCS / "tools.md").read_text() == tools_page()


def test_every_tool_is_described_once_and_listed_in_each_of_its_toolsets() -> None:
    page = tools_page()
    assert frozenset(DESCRIBED) >= TOOLSETS
    for tool in CATALOGUE:
        assert page.count(f"\n### `{tool.name}`\n") == 1
        assert page.count(f"\n| [`{tool.name}`](#{tool.name}) |") == len(tool.toolsets)


def test_every_argument_is_explained() -> None:
    """By its description in the schema or, where a model need not read one, by the page's glossary."""
    assert unexplained() == []
