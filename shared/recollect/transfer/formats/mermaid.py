"""Mermaid: a flowchart of names and the relations between them, as the mcp-memory crate draws it."""

import re
from collections.abc import Sequence

from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer

_BARE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""A label between bars that needs no quotes, unless it is one of Mermaid's own words."""
_RESERVED = frozenset(
    {
        *(
            "call",
            "class",
            "classdef",
            "click",
            "default",
            "direction",
            "end",
            "flowchart",
            "graph",
            "href",
            "interpolate",
        ),
        *("linkstyle", "style", "subgraph", "o", "x", "v", "tb", "td", "bt", "rl", "lr", "br"),
    }
)
"""Mermaid's own words."""

_PLACEHOLDERS = "°¶"
"""Characters of the form that Mermaid gives to `#35;` until it draws (`ﬂ°°35¶ß`): they are escaped, so that no text is
taken for this form."""


class MermaidWriter(Writer):
    """Writes one flowchart."""

    writes_placeholders = True

    def opening(self, stage: Stage) -> str:
        """Write the head of the file, once."""
        return "graph LR\n" if stage is Stage.ENTITIES else ""

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write each node on a line."""
        return "".join(f"  {self.mark(node.id)}[{_quoted(node.name or '')}]\n" for node in nodes)

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write each edge on a line."""
        return "".join(
            f"  {self.mark(edge.from_node)} -->|{_label(edge.record.relation_type)}| {self.mark(edge.to_node)}\n"
            for edge in edges
        )


def _label(text: str) -> str:
    return text if _BARE.fullmatch(text) and text not in _RESERVED else _quoted(text)


def _quoted(text: str) -> str:
    """A label that shows the text as it is: no Markdown, HTML, mathematics, directive or end of the quotes.

    Everything except letters, digits and plain punctuation is written by its number, as `#35;`. Characters that cannot
    be printed, such as a newline, become spaces.
    """
    return '"' + ("".join(map(_shown, text)) or " ") + '"'


def _shown(character: str) -> str:
    if character.isalnum() or character in " _,.'":
        return character
    if not character.isprintable():
        return " "
    return character if ord(character) > 127 and character not in _PLACEHOLDERS else f"#{ord(character)};"
