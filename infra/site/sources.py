"""Hooks of MkDocs.

What pages say of files outside of `docs` becomes a name, since the site does not have them. On a forge these are links
(`../tests/contract/test_agent.py`); tests hold that each leads to a file that is there.

The search finds guides before records: who asks it wants to do something.
"""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]\[]*)\]\(((?:\.\./)+[^)\s]*)\)")
_BOOSTS = {
    "adr/": 0.3,
    "runbook/": 0.4,
    "benchmarks.md": 0.4,
    "lab/": 0.2,
    "quick-start.md": 2.0,
    "clients.md": 2.0,
}
"""How much what is found on pages counts, by the beginning of their path; on others 1."""

_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text without the links that leave `docs`; says how much the search counts it."""
    boost = next((boost for path, boost in _BOOSTS.items() if page.file.src_uri.startswith(path)), 1.0)
    page.meta.setdefault("search", {"boost": boost})
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        inside = not posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[0] if inside else link[1]

    pieces = _FENCE.split(markdown)
    return "".join(piece if piece.startswith("```") else _LINK.sub(named, piece) for piece in pieces)
