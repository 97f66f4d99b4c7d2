"""The documentation as a site: it builds strictly, shows all of its pages, and fetches nothing from elsewhere."""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[3]
PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
COUNTED = {"li", "table", "pre", "h1", "h2", "h3", "h4"}
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class Page(HTMLParser):
    """The elements in the article of a page of the site, and the addresses that a browser fetches for it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.fetched: set[str] = set()
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "article":
            self._inside = True
        if self._inside and tag in COUNTED:
            self.counts[tag] += 1
        if tag in FETCHED and given.get("rel") not in {"canonical", "prev", "next"}:
            self.fetched.add(given.get(FETCHED[tag]) or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._inside = False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a broken link or anchor, or a page without a place, fails the build."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def page_of(site: Path, page: Path) -> Page:
    return Page((site / page.with_suffix(".html")).read_text())


def test_each_page_shows_all_of_its_elements(site: Path) -> None:
    """Lists, tables and code are rendered as in CommonMark, by which the pages are written."""
    reader = MarkdownIt("commonmark").enable("table")
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        tokens = reader.parse(text)
        said = Counter(token.tag for token in tokens if token.type.endswith("_open"))
        said["pre"] = sum(token.type in {"fence", "code_block"} for token in tokens)
        shown = page_of(site, page).counts
        assert {tag: shown[tag] for tag in COUNTED} == {tag: said[tag] for tag in COUNTED}, page


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        assert [url for url in Page(file.read_text()).fetched if re.match(r"(https?:)?//", url)] == [], file
    for file in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*", file.read_text()) == [], file


def test_no_page_has_a_diagram_that_needs_a_fetched_script() -> None:
    """The theme draws diagrams by a script from elsewhere."""
    for page in PAGES:
        assert "```mermaid" not in (ROOT / "docs" / page).read_text(), page


def test_every_page_can_be_searched(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text()
    for page in PAGES:
        assert f'"{page.with_suffix(".html").as_posix()}"' in index, page


TYPED = {
    "delete a memory": "tools/agent.html#forget",
    "remove a memory": "tools/agent.html#forget",
    "edit a memory": "tools/agent.html#revise",
    "find a memory": "tools/agent.html#recall",
    "erase person": "retention.html#erasure",
    "undo": "curation.html#undoing",
    "history": "recall.html#the-past",
    "tags": "tools/organize.html#add_tags",
    "export": "transfer.html",
    "sign in": "people.html",
    "SSO": "identity-providers.html",
    "quota": "limits.html#quotas",
    "rate limit": "limits.html#how-often-and-how-much-at-once",
}


class Section:
    """A section in the site's search index, and how high the search counts it.

    In the browser it also counts how rare a word is, which decides nothing about words that few sections have.
    """

    def __init__(self, entry: dict[str, Any]) -> None:
        self.location, self._boost = str(entry["location"]), float(entry["boost"])
        texts = {"title": entry["title"], "text": entry["text"], "tags": " ".join(entry.get("tags", ()))}
        self._words = {field: re.findall(r"[\w-]+", text.lower()) for field, text in texts.items()}

    def score(self, typed: str, boosts: dict[str, float]) -> float:
        """Each word that was typed is the beginning of a word; a word counts more in a short field."""
        return self._boost * sum(
            boost / (1 + math.sqrt(len(self._words[field])))
            for field, boost in boosts.items()
            for word in typed.lower().split()
            if any(each.startswith(word) for each in self._words[field])
        )


def test_words_that_people_type_find_the_section(site: Path, subtests: pytest.Subtests) -> None:
    """Sections whose own words are others: nobody who wants to delete a memory looks for `forget`."""
    text = (site / "search" / "search_index.js").read_text()
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    boosts = {field: float(options["boost"]) for field, options in index["config"]["fields"].items()}
    sections = [Section(entry) for entry in index["docs"]]
    for typed, location in TYPED.items():
        with subtests.test(typed):
            assert max(sections, key=lambda section: section.score(typed, boosts)).location == location
