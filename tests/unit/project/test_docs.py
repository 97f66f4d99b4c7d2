"""Links between the documents lead to existing files and headings, and the pages agree with the code."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from recollect.settings import Settings
from recollect_http.server.connection_limits import ConnectionBounds

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def links_of(page: Path) -> list[str]:
    """The targets of a page's links to other files, without those in code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]


def anchors_of(page: Path) -> set[str]:
    """The fragments by which a forge addresses a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_to_an_existing_heading(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(str(page.relative_to(ROOT))):
            for link in links_of(page):
                target, _, anchor = link.partition("#")
                file = (page.parent / target) if target else page
                assert file.exists(), link
                if anchor and file.suffix == ".md":
                    assert anchor in anchors_of(file), link


@pytest.mark.parametrize(
    "folder", ["shared/recollect", "services/recollect_gateway", "services/recollect_gateway/mcp_endpoint"]
)
def test_the_layout_names_every_module(folder: str) -> None:
    layout = (ROOT / "docs" / "architecture.md").read_text().partition("## Layout")[2]
    found = [path.stem for path in (ROOT / folder).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    modules = {name for name in found if not name.startswith("__")}
    assert modules - set(re.findall(r"\w+", layout)) == set()


def test_the_first_pages_link_to_the_glossary() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        assert any(link.endswith("glossary.md") for link in links_of(ROOT / page)), page


def test_the_figures_of_the_readme_are_those_of_the_comparison() -> None:
    measured = (ROOT / "README.md").read_text().partition("What is measured")[2].partition("\n## ")[0]
    figures = set(re.findall(r"(?<![\d.])\.\d+", measured))
    assert figures
    assert figures - set(re.findall(r"(?<![\d.])\.\d+", (ROOT / "docs" / "comparison.md").read_text())) == set()


@pytest.mark.parametrize("page", ["index.md", "quick-start.md"])
def test_the_first_pages_of_the_site_link_to_the_pages_for_operators(page: str) -> None:
    links = set(re.findall(r"\]\(([\w.-]+)", (ROOT / "docs" / page).read_text()))
    assert {"deploy.md", "image.md", "operations.md"} <= links


def test_the_first_page_of_the_site_leads_to_what_operators_use() -> None:
    links = set(re.findall(r"\]\(([\w.-]+)", (ROOT / "docs" / "index.md").read_text()))
    assert {"operators.md", "cells.md", "replicas.md"} <= links


def test_the_readme_lists_each_page_of_the_documentation() -> None:
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert len(pages) > 40
    assert pages - set(links_of(ROOT / "README.md")) == set()


def test_the_page_of_limits_has_the_actual_defaults() -> None:
    """Each row that names a setting names its default first."""
    rows = [line for line in (ROOT / "docs" / "limits.md").read_text().splitlines() if line.startswith("| ")]
    matches = [re.search(r"^\| [^|]+\| `([^`]+)`[^|]*\| `RECOLLECT_([A-Z_]+)`", row) for row in rows]
    defaults = {match[2].lower(): match[1] for match in matches if match}
    assert len(defaults) >= 18
    for name, default in defaults.items():
        assert default == str(Settings.model_fields[name].default), name


def test_the_page_of_limits_names_every_limit_of_a_connection() -> None:
    page = (ROOT / "docs" / "limits.md").read_text()
    for bound in fields(ConnectionBounds):
        [setting] = [name for name in Settings.model_fields if name.removeprefix("max_") == bound.name]
        assert f"`RECOLLECT_{setting.upper()}`" in page


def test_measurements_of_now_are_on_one_short_page() -> None:
    """History, and notes on what was tried, are in the lab: each notebook says when it was written."""
    assert len((ROOT / "docs" / "benchmarks.md").read_text().splitlines()) <= 150
    index = links_of(ROOT / "docs" / "lab" / "index.md")
    for notebook in (ROOT / "docs" / "lab").glob("[!i]*.md"):
        assert notebook.name in index, notebook.name
        assert re.search(r"\b[A-Z][a-z]+ 20\d\d\b", notebook.read_text().split("\n## ")[0]), notebook.name


def test_every_decision_is_in_the_index() -> None:
    """Each page has a row of the index with its number, its title, a status and a sentence; no row lacks its page."""
    index = (ROOT / "docs" / "adr" / "index.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \| (\S.*) \| (\S.*\.) \|$", index, re.MULTILINE)
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    headings = [page.read_text().partition("\n")[0] for page in pages]
    assert [(f"# {number}. {title}", file) for number, title, file, _, _ in rows] == [
        (heading, page.name) for heading, page in zip(headings, pages, strict=True)
    ]
    assert all(status == "accepted" or status.startswith("replaced by ") for _, _, _, status, _ in rows)


def test_what_to_edit_exists() -> None:
    """Each path in CONTRIBUTING's table exists; what stands in angle brackets is any name."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("edit these files")[2].partition("\n## ")[0]
    paths = set(re.findall(r"`([\w.-]+/[^` ]*)`", table)) - {"/v1"}
    assert len(paths) > 40
    assert [path for path in paths if not [*ROOT.glob(re.sub(r"<\w+>", "*", path))]] == []
