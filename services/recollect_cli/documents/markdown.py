"""Markdown and plain text: front matter is metadata, headings are context, links are relations."""

import re
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from typing import Any
from urllib.parse import unquote

import yaml
from markdown_it import MarkdownIt

from recollect_cli.documents.model import Document, gathered

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_WIKI_LINK = re.compile(r"\[\[(?P<target>[^\[\]|#\n]{1,400})(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#")
"""How a link begins that leads out of the folder, or stays in the document."""

MAX_METADATA = 50
"""Fields of the front matter that are kept, at most."""

_Block = tuple[tuple[str, ...], str]
"""The headings of a block, and its source."""


def read_markdown(text: str) -> Document:
    """The document of a Markdown file. Front matter that is no YAML object is text."""
    front, body = _front_matter(text.replace("\r\n", "\n"))
    title = front.pop("title", None)
    tags = _listed(front.pop("tags", None))
    passages = [
        passage
        for headings, blocks in groupby(_blocks(body), key=lambda block: block[0])
        for passage in gathered((source for _, source in blocks), headings, f"#{headings[-1]}" if headings else "")
    ]
    metadata = {str(name): _plain(value) for name, value in list(front.items())[:MAX_METADATA]}
    return Document(passages, title if isinstance(title, str) else None, tags, metadata, _links(body))


def read_text(text: str) -> Document:
    """The document of a plain text, whose blocks stand between empty lines."""
    return Document(list(gathered(re.split(r"\n\s*\n", text.replace("\r\n", "\n")), (), "")))


def _front_matter(text: str) -> tuple[dict[Any, Any], str]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    try:
        front = yaml.safe_load(match["yaml"]) if "&" not in match["yaml"] else None  # No anchors: they may multiply.
    except (yaml.YAMLError, ValueError, RecursionError):
        front = None
    return (front, text[match.end() :]) if isinstance(front, dict) else ({}, text)


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks between headings, as they are written, each with the headings above it."""
    lines = text.split("\n")
    headings: list[tuple[int, str]] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open" and following is not None:
            depth = int(token.tag[1:])
            headings = [*(heading for heading in headings if heading[0] < depth), (depth, following.content.strip())]
            continue
        yield tuple(name for _, name in headings if name), "\n".join(lines[slice(*token.map)])


def _links(text: str) -> list[str]:
    """The targets of wiki links, and of links to other files of the folder."""
    found = [match["target"].strip() for match in _WIKI_LINK.finditer(text)]
    for token in MarkdownIt("commonmark").parse(text):
        for child in token.children or ():
            target = child.attrGet("href") if child.type == "link_open" else None
            if isinstance(target, str) and not _SCHEME.match(target):
                found.append(unquote(target.split("#")[0]))
    return list(dict.fromkeys(filter(None, found)))


def _listed(value: Any) -> list[str]:
    """Tags as front matter has them: a list, or words between commas or blanks."""
    if isinstance(value, str):
        value = re.split(r"[,\s]+", value)
    return [str(tag).lstrip("#") for tag in value if str(tag).strip("# ")] if isinstance(value, list) else []


def _plain(value: Any) -> Any:
    """A value of YAML as JSON has it."""
    if isinstance(value, date):  # Also a time.
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
