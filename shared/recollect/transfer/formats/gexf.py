"""GEXF 1.3: for Gephi and networkx. Nodes carry type, observations, tags and importance; edges their type."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from recollect.transfer.formats.cells import as_cell
from recollect.transfer.formats.graphml import node_id
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer
from recollect.transfer.formats.xml_files import xml_attribute
from recollect.transfer.records import End, EntityRecord, FactRecord

_NODE_ATTRIBUTES = ("entityType", "observations", "createdAt", "lastModified", "tags", "importance", "parentId", "text")
_EDGE_ATTRIBUTES = ("relationType", "createdAt", "metadata")
_LABEL = 80
"""The number of characters of a fact that label its node."""


class GexfWriter(Writer):
    """Writes one directed graph: all nodes, then all edges."""

    writes_facts = True
    writes_placeholders = True

    def opening(self, stage: Stage) -> str:
        """Write the head before the nodes, and the separator before the edges."""
        return {Stage.ENTITIES: _HEAD, Stage.FACTS: "", Stage.RELATIONS: "</nodes>\n<edges>\n"}[stage]

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write each node on a line."""
        return "".join(map(_node, nodes))

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write each edge on a line."""
        return "".join(map(_edge, edges))

    def closing(self, stage: Stage) -> str:
        """Write the end of the file, once."""
        return "</edges>\n</graph>\n</gexf>\n" if stage is Stage.RELATIONS else ""


def _attributes(of: str, names: Sequence[str]) -> str:
    attributes = "".join(
        f'<attribute id="{index}" title="{name}" type="{"double" if name == "importance" else "string"}"/>'
        for index, name in enumerate(names)
    )
    return f'<attributes class="{of}">{attributes}</attributes>\n'


_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://gexf.net/1.3" version="1.3">\n'
    '<meta><creator>Recollect</creator></meta>\n<graph defaultedgetype="directed" mode="static">\n'
    f"{_attributes('node', _NODE_ATTRIBUTES)}{_attributes('edge', _EDGE_ATTRIBUTES)}<nodes>\n"
)


def _node(node: ExportedNode) -> str:
    fields: dict[str, Any] = msgspec.to_builtins(node.record) if node.record else {}
    end: End = node.record.end if isinstance(node.record, FactRecord) else node.name or ""
    label = xml_attribute(end if isinstance(end, str) else end.text[:_LABEL])
    if isinstance(node.record, EntityRecord):
        fields["observations"] = node.record.active_observations
    if "kind" in fields:
        fields["entityType"] = fields["kind"]
    return f"<node id={node_id(end, node.id)} label={label}>{_values(_NODE_ATTRIBUTES, fields)}</node>\n"


def _edge(edge: ExportedEdge) -> str:
    source, target = node_id(edge.record.from_, edge.from_node), node_id(edge.record.to, edge.to_node)
    label = xml_attribute(edge.record.relation_type)
    values = _values(_EDGE_ATTRIBUTES, msgspec.to_builtins(edge.record))
    return f'<edge id="{edge.id}" source={source} target={target} label={label}>{values}</edge>\n'


def _values(names: Sequence[str], fields: Mapping[str, Any]) -> str:
    present = [(index, fields[name]) for index, name in enumerate(names) if name in fields]
    values = "".join(f'<attvalue for="{index}" value={xml_attribute(as_cell(value))}/>' for index, value in present)
    return f"<attvalues>{values}</attvalues>"
