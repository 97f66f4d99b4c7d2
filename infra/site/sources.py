"""A hook of MkDocs: what pages say of files outside of `docs` becomes a name, since the site does not have them.

On a forge these are links (`../tests/contract/test_agent.py`); tests hold that each leads to a file that is there.
"""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]\[]*)\]\(((?:\.\./)+[^)\s]*)\)")
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text without the links that leave `docs`."""
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        inside = not posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[0] if inside else link[1]

    pieces = _FENCE.split(markdown)
    return "".join(piece if piece.startswith("```") else _LINK.sub(named, piece) for piece in pieces)
