"""Which names tools and imports accept. A line feed at the end of a name is part of it, so the name is refused."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from recollect.errors import InvalidInput
from recollect.transfer.model import UnreadableLine
from recollect.transfer.records import FactKey, parsed
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS
from recollect_gateway.mcp_endpoint.tools.lineage.put_subgraph import EdgeIn, SubgraphNode
from recollect_http.requests.argument_types import END
from recollect_http.requests.parsing import parse


def patterns(schema: Any) -> Iterator[str]:
    """Every pattern of a schema, wherever it stands."""
    if isinstance(schema, list | tuple):
        schema = dict(enumerate(schema))
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                yield value
            yield from patterns(value)


def types_of(tool: ToolSpec) -> list[type[msgspec.Struct]]:
    """The types that a call is parsed as: the arguments, or each item where items are read one by one."""
    return [SubgraphNode, EdgeIn] if getattr(tool.arguments, "read_one_by_one", ()) else [tool.arguments]


@pytest.mark.parametrize("tool", CATALOGUE, ids=lambda tool: tool.name)
def test_patterns_match_to_the_end_and_are_listed_portably(tool: ToolSpec) -> None:
    enforced = [*patterns(msgspec.json.schema_components(types_of(tool)))]
    assert enforced or tool.name == "fetch"  # It has no graph, and no other argument with a pattern.
    assert all(pattern.endswith(END) for pattern in enforced)
    listed = [*patterns(json_schema(tool.arguments))]
    assert len(listed) >= len(set(enforced))
    assert all(pattern.endswith("$") for pattern in listed)


def test_no_tool_accepts_a_graph_name_that_ends_with_a_line_feed(subtests: pytest.Subtests) -> None:
    for tool in CATALOGUE:
        with subtests.test(tool.name):
            with pytest.raises(InvalidInput) as refused:
                parse(tool.arguments, {"graph": "default\n"})
            faults = getattr(refused.value, "faults", [refused.value])
            assert "graph" in [fault.path for fault in faults]


def test_an_impossible_name_is_refused_with_its_path(subtests: pytest.Subtests) -> None:
    for tool, arguments, path in [
        ("get_node", {"node_id": "x", "owner_id": "a\n"}, "owner_id"),
        ("create_relation", {"from_id": "x", "to_id": "y", "relation_type": "X\n"}, "relation_type"),
        ("create_graph", {"name": "a\n"}, "name"),
        ("update_graph_config", {"name": "a\n"}, "name"),
        ("delete_graph", {"graph": "a\n"}, "graph"),
        ("get_node", {"node_id": "x", "owner_id": ""}, "owner_id"),
        ("get_node", {"node_id": "x", "owner_id": "a\nb"}, "owner_id"),
        ("get_node", {"node_id": "x", "owner_id": "x" * 129}, "owner_id"),
    ]:
        with subtests.test(f"{tool} {arguments}"):
            with pytest.raises(InvalidInput) as refused:
                parse(TOOLS[tool].arguments, arguments)
            assert refused.value.path == path


@pytest.mark.parametrize("status", ["outdated\n", "\noutdated", "secret", ""])
def test_an_import_refuses_an_unknown_status_without_repeating_it(status: str) -> None:
    with pytest.raises(UnreadableLine) as refused:
        parsed(FactKey, {"text": "x", "status": status})
    assert str(refused.value).startswith("status: ")
    assert "secret" not in str(refused.value)


def test_an_import_accepts_each_status() -> None:
    for status in ("active", "outdated", "archived"):
        assert parsed(FactKey, {"text": "x", "status": status}).status == status
