"""DOT, Graphviz's language: names and the relations between them, as the mcp-memory crate draws them."""

from collections.abc import Sequence

from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer


class DotWriter(Writer):
    """Writes one directed graph."""

    writes_placeholders = True

    def opening(self, stage: Stage) -> str:
        """Write the head of the file, once."""
        return "digraph G {\n" if stage is Stage.ENTITIES else ""

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write each node on a line."""
        return "".join(f"  {self.mark(node.id)} [label={_quoted(node.name or '')}];\n" for node in nodes)

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write each edge on a line."""
        return "".join(
            f"  {self.mark(edge.from_node)} -> {self.mark(edge.to_node)} "
            f"[label={_quoted(edge.record.relation_type)}];\n"
            for edge in edges
        )

    def closing(self, stage: Stage) -> str:
        """Write the end of the file, once."""
        return "}\n" if stage is Stage.RELATIONS else ""


def _quoted(text: str) -> str:
    """A label that shows the text as it is.

    A quoted label knows `\\"` for a quote, escapes such as `\\N` for the node's name, and HTML's character entities; it
    is never HTML itself, which stands between < and >.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    escaped = escaped.replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\n")
    return '"' + "".join(character if ord(character) >= 32 else " " for character in escaped) + '"'
