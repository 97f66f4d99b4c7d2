"""The formats of transfer: one module each, with a writer of pieces and, where it can be read, a reader of items.

    json      everything                             read
    jsonl     the official memory server's file      read
    csv       tables for spreadsheets                read
    graphml   for networkx, Gephi, yEd               read
    gexf      for Gephi, networkx
    dot       for Graphviz
    markdown  for people
    mermaid   for people

    mem0      another memory's export                read only
    zep       another memory's export                read only
    chatgpt   an assistant's conversations           read only
    claude    an assistant's conversations           read only

docs/transfer.md says which data each format holds. `writer.py` is the interface of writers; `decoding.py`, `cells.py`,
`lines.py`, `xml_files.py`, `json_stream.py` and `foreign.py` hold code that several formats share.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from recollect.errors import InvalidInput
from recollect.transfer.formats import chats, csv_files, graphml, json_files, jsonl, mem0, zep
from recollect.transfer.formats.decoding import Read
from recollect.transfer.formats.dot import DotWriter
from recollect.transfer.formats.gexf import GexfWriter
from recollect.transfer.formats.markdown import MarkdownWriter
from recollect.transfer.formats.mermaid import MermaidWriter
from recollect.transfer.formats.writer import Writer

ReadableName = Literal["json", "jsonl", "csv", "graphml"]
"""The names of the formats that can be imported, as the type of an argument."""
ImportName = Literal[ReadableName, "mem0", "zep", "chatgpt", "claude"]
"""These formats, and the exports of other systems, which Recollect does not write."""
FormatName = Literal[ReadableName, "gexf", "dot", "markdown", "mermaid"]


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `suffixes` are those of its files, the usual one first. `read` None: it cannot be imported.

    `by_line`: each line is decoded by itself, so that a line that is not UTF-8 breaks no other line.
    """

    name: str
    media_type: str
    suffixes: tuple[str, ...]
    writer: Writer
    read: Callable[[Iterator[str]], Read] | None = None
    by_line: bool = False


_ALL = (
    Format("json", "application/json", (".json",), json_files.JsonWriter(), json_files.read),
    Format("jsonl", jsonl.MEDIA_TYPE, (".jsonl", ".ndjson"), jsonl.JsonlWriter(), jsonl.read, by_line=True),
    Format("csv", "text/csv", (".csv",), csv_files.CsvWriter(), csv_files.read),
    Format("graphml", "application/graphml+xml", (".graphml",), graphml.GraphmlWriter(), graphml.read),
    Format("gexf", "application/gexf+xml", (".gexf",), GexfWriter()),
    Format("dot", "text/vnd.graphviz", (".dot", ".gv"), DotWriter()),
    Format("markdown", "text/markdown", (".md", ".markdown"), MarkdownWriter()),
    Format("mermaid", "text/vnd.mermaid", (".mmd", ".mermaid"), MermaidWriter()),
)

FORMATS = {format_.name: format_ for format_ in _ALL}
"""Every format by its name."""
IMPORTED = tuple(format_.name for format_ in _ALL if format_.read)
"""The names of the formats that can be imported."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader of a format. `by_line` as in Format."""

    media_type: str
    read: Callable[[Iterator[str]], Read]
    by_line: bool = False


READERS = {format_.name: Reader(format_.media_type, format_.read, format_.by_line) for format_ in _ALL if format_.read}
"""The readers of the formats that can be imported, by the name of the format."""
READERS |= {name: Reader("application/json", module.read) for name, module in (("mem0", mem0), ("zep", zep))}
READERS |= {
    "chatgpt": Reader("application/json", chats.read_chatgpt),
    "claude": Reader("application/json", chats.read_claude),
}


def reader_named(name: str) -> Reader:
    """The reader of the format with this name. Raises InvalidInput for a format that cannot be imported."""
    if name not in READERS:
        raise InvalidInput(
            f"This format cannot be imported. The formats that can be imported are: {', '.join(READERS)}", path="format"
        )
    return READERS[name]


def format_named(name: str) -> Format:
    """The format with this name. Raises InvalidInput for an unknown one."""
    if name not in FORMATS:
        raise InvalidInput(f"Must be one of {', '.join(FORMATS)}", path="format")
    return FORMATS[name]
