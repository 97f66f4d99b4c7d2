"""Links between the documents lead to files and headings that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def links_of(page: Path) -> list[str]:
    """The targets of a page's links to other files, without those in code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]


def anchors_of(page: Path) -> set[str]:
    """The fragments by which a forge addresses a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links_of(page):
        target, _, anchor = link.partition("#")
        file = (page.parent / target) if target else page
        assert file.exists(), link
        if anchor and file.suffix == ".md":
            assert anchor in anchors_of(file), link


def test_the_law_for_names_is_linked_where_newcomers_begin() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        assert any(link.endswith("glossary.md") for link in links_of(ROOT / page)), page
