"""GraphML: a graph whose nodes and edges have every field as data; networkx, Gephi, yEd and others read it.

The id of an entity is its name, so that edges name their ends. The id of a fact begins with `fact:`. A list is a JSON
array. Document types, and with them entities and references to other files, are refused; depth and sizes are bounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID
from xml.sax import SAXException  # nosec - what defusedxml's parser raises
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import msgspec
from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from recollect.errors import InvalidInput
from recollect.transfer.formats.cells import COLUMNS, NUMBERS, as_cell, read_cells
from recollect.transfer.formats.decoding import MAX_CELL, ParsedRecord, Read
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer
from recollect.transfer.formats.xml_files import FACT, entity_id, restored, xml_attribute, xml_text
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import End, FactKey, FactRecord

MAX_DEPTH = 8
MAX_FACTS = 64 * 1024 * 1024
MAX_ENDS = 600_000
"""Most characters of facts, and most facts, that a reader keeps, because edges refer to facts by id."""
MAX_TAG = 1024 * 1024
"""Most characters of a tag or comment, roughly: the parser keeps one until it is complete. Long text is data."""
MAX_NAMES = 1_000
"""Most different names of elements, attributes and keys: they are kept until the end of the file."""

_PLACEHOLDER = "placeholder"
_NODE_KEYS = tuple(dict.fromkeys([*COLUMNS[Stage.ENTITIES][1:], *COLUMNS[Stage.FACTS], _PLACEHOLDER]))
_EDGE_KEYS = tuple(key for key in COLUMNS[Stage.RELATIONS] if key not in ("from", "to", "fromFact", "toFact"))
_TYPES = {**dict.fromkeys(NUMBERS, "double"), "ordinal": "int", _PLACEHOLDER: "boolean"}


class GraphmlWriter(Writer):
    """Writes one graph."""

    writes_facts = True
    writes_status = True
    writes_placeholders = True

    def opening(self, stage: Stage) -> str:
        """Write the head of the file, once."""
        return _HEAD if stage is Stage.ENTITIES else ""

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write each node on a line."""
        return "".join(map(_node, nodes))

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write each edge on a line."""
        return "".join(map(_edge, edges))

    def closing(self, stage: Stage) -> str:
        """Write the end of the file, once."""
        return "</graph>\n</graphml>\n" if stage is Stage.RELATIONS else ""


def node_id(end: End, node: UUID) -> str:
    """The id of a node as the value of an attribute, with its quotes."""
    return entity_id(end) if isinstance(end, str) else f'"{FACT}{node}"'


def _keys(of: str, names: Sequence[str]) -> str:
    return "".join(
        f'<key id="{of}_{name}" for="{of}" attr.name="{name}" attr.type="{_TYPES.get(name, "string")}"/>\n'
        for name in names
    )


_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    f'{_keys("node", _NODE_KEYS)}{_keys("edge", _EDGE_KEYS)}<graph edgedefault="directed">\n'
)


def _node(node: ExportedNode) -> str:
    if node.record is None:
        return f'<node id={entity_id(node.name or "")}><data key="node_{_PLACEHOLDER}">true</data></node>\n'
    end: End = node.record.end if isinstance(node.record, FactRecord) else node.record.name
    fields: dict[str, Any] = msgspec.to_builtins(node.record)
    return f"<node id={node_id(end, node.id)}>{_data('node', _NODE_KEYS, fields)}</node>\n"


def _edge(edge: ExportedEdge) -> str:
    source, target = node_id(edge.record.from_, edge.from_node), node_id(edge.record.to, edge.to_node)
    fields: dict[str, Any] = msgspec.to_builtins(edge.record)
    label = xml_attribute(str(edge.id))
    return f"<edge id={label} source={source} target={target}>{_data('edge', _EDGE_KEYS, fields)}</edge>\n"


def _data(of: str, names: Sequence[str], fields: Mapping[str, Any]) -> str:
    present = [(name, fields[name]) for name in names if name in fields]
    return "".join(f'<data key="{of}_{name}">{xml_text(as_cell(value))}</data>' for name, value in present)


def read(texts: Iterator[str]) -> Read:
    """Yield the nodes and edges in order. Raises InvalidInput for a file that is not GraphML or is refused."""
    # An incremental parser: items that a piece of text completes are yielded before the next piece is read.
    parser = DefusedExpatParser(forbid_dtd=True, forbid_entities=True, forbid_external=True)
    handler = _GraphmlHandler(parser)
    parser.setContentHandler(handler)
    unparsed = 0  # Characters since the parser last reported something.
    for text in texts:
        handler.has_progressed = False
        _run_step(parser, lambda text=text: parser.feed(text))
        yield from handler.take_items()
        unparsed = 0 if handler.has_progressed else unparsed + len(text)
        if unparsed > MAX_TAG:
            location = f"line {parser.getLineNumber()}"
            raise InvalidInput(f"A tag or comment has more than {MAX_TAG} characters", path=location)
    _run_step(parser, parser.close)
    if not handler.has_begun:
        raise InvalidInput("Not XML: no element found", path="line 1")
    yield from handler.take_items()


def _run_step(parser: Any, step: Any) -> None:
    try:
        step()
    except DefusedXmlException:
        location = f"line {parser.getLineNumber()}"
        raise InvalidInput("Document types and entities are not accepted", path=location) from None
    except SAXException as error:
        raise InvalidInput(f"Not XML: {error.getMessage()}", path=f"line {parser.getLineNumber()}") from None


class _GraphmlHandler(ContentHandler):
    """Collects the data of the node or edge that is being read."""

    def __init__(self, parser: Any) -> None:
        super().__init__()
        self._parser = parser
        self._items: list[ParsedRecord | ImportProblem] = []
        self.has_begun = False
        self.has_progressed = False
        self._names: set[str] = set()
        self._open: list[str] = []
        self._keys: dict[str, str] = {}
        self._attributes: Mapping[str, str] = {}
        self._where = ""
        self._key = ""
        self._fields: dict[str, str] = {}
        self._texts: list[str] = []
        self._size = 0
        self._ends: dict[str, End] = {}
        self._end_characters = 0

    def take_items(self) -> list[ParsedRecord | ImportProblem]:
        """Return the items that were read since the last call."""
        items, self._items = self._items, []
        return items

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        """Handle the start of an element."""
        self._count_names(name, *attrs.keys())
        local = name.rpartition(":")[2]
        if len(self._open) >= MAX_DEPTH or self._open[-1:] not in _INSIDE.get(local, ()):
            self._refuse("This element is not accepted here")
        self.has_begun = True
        self._open.append(local)
        attributes: dict[str, str] = dict(attrs.items())
        if local == "key":
            self._declare(attributes)
        elif local in ("node", "edge"):
            self._attributes, self._where, self._fields, self._size = attributes, self._location(), {}, 0
        elif local == "data":
            self._key = self._declared_name(attributes.get("key", ""))
            self._texts = []

    def processingInstruction(self, target: str, data: str) -> None:
        """Count a processing instruction; its content is ignored."""
        self._count_names(target)

    def characters(self, content: str) -> None:
        """Handle text."""
        self.has_progressed = True
        if self._open[-1:] == ["data"]:
            self._size += len(content)
            if self._size > MAX_CELL:
                self._refuse(f"One node or edge has more than {MAX_CELL} characters")
            self._texts.append(content)

    def endElement(self, name: str) -> None:
        """Handle the end of an element."""
        self.has_progressed = True
        match self._open.pop():
            case "data" if self._open[-1] in ("node", "edge"):
                if self._key in self._fields:
                    self._refuse("Its data holds a key twice")
                self._fields[self._key] = restored("".join(self._texts))
            case "node":
                self._add_items(self._read_node)
            case "edge":
                self._add_items(self._read_edge)

    def _add_items(self, read: Any) -> None:
        try:
            self._items += read()
        except UnreadableLine as error:
            self._items.append(ImportProblem(self._where, error.reason))

    def _read_node(self) -> Sequence[ParsedRecord | ImportProblem]:
        element_id, fields = self._required("id"), dict(self._fields)
        if fields.pop(_PLACEHOLDER, "") == "true":
            return []
        if element_id.startswith(FACT):
            found = read_cells(Stage.FACTS, fields, self._where)
            for item in found:
                if isinstance(item, ParsedRecord) and isinstance(item.record, FactRecord):
                    self._remember(element_id, item.record.end)
            return found
        name = fields.setdefault("name", restored(element_id))
        if name != restored(element_id):
            self._remember(element_id, name)
        return read_cells(Stage.ENTITIES, fields, self._where)

    def _read_edge(self) -> Sequence[ParsedRecord | ImportProblem]:
        fields: dict[str, str] = dict(self._fields)
        for end, attribute in (("from", "source"), ("to", "target")):
            element_id = self._required(attribute)
            known_end = self._ends.get(element_id)
            if isinstance(known_end, FactKey):
                fields[f"{end}Fact"] = as_cell(msgspec.to_builtins(known_end))
            elif element_id.startswith(FACT):
                raise UnreadableLine(f"{attribute}: no node before it has this id")
            else:
                fields[end] = known_end or restored(element_id)
        return read_cells(Stage.RELATIONS, fields, self._where)

    def _remember(self, element_id: str, end: End) -> None:
        self._end_characters += len(element_id) + len(end if isinstance(end, str) else end.text)
        if self._end_characters > MAX_FACTS or len(self._ends) >= MAX_ENDS:
            self._refuse(
                f"More than {MAX_ENDS} facts, or {MAX_FACTS} characters of them: use JSON for a graph of this size"
            )
        self._ends[element_id] = end

    def _required(self, attribute: str) -> str:
        if not self._attributes.get(attribute):
            raise UnreadableLine(f"{attribute}: Required")
        return self._attributes[attribute]

    def _declare(self, attributes: Mapping[str, str]) -> None:
        name = attributes.get("attr.name", attributes.get("id", ""))
        of = attributes.get("for", "all")
        known = {"name", *_NODE_KEYS} if of == "node" else {*_EDGE_KEYS}
        if of not in ("node", "edge") or name not in known:
            self._refuse("Unknown key")
        self._count_names(attributes.get("id", ""))
        self._keys[attributes.get("id", "")] = name

    def _count_names(self, *names: str) -> None:
        """Remember names. Raises InvalidInput for too many."""
        self.has_progressed = True
        self._names.update(names)
        if len(self._names) > MAX_NAMES:
            self._refuse(f"More than {MAX_NAMES} different names of elements, attributes and keys")

    def _declared_name(self, key: str) -> str:
        if key not in self._keys:
            self._refuse("Its key was not declared")
        return self._keys[key]

    def _location(self) -> str:
        return f"line {self._parser.getLineNumber()}"

    def _refuse(self, reason: str) -> Any:
        raise InvalidInput(reason, path=self._location())


_INSIDE: dict[str, tuple[list[str], ...]] = {
    "graphml": ([],),
    "key": (["graphml"],),
    "graph": (["graphml"],),
    "desc": (["graphml"], ["graph"], ["node"], ["edge"], ["key"]),
    "node": (["graph"],),
    "edge": (["graph"],),
    "data": (["node"], ["edge"]),
}
"""The parents that each element may have. Other elements of GraphML (ports, hyperedges, nested graphs) are refused."""
