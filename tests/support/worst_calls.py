"""The largest calls that the schemas of tools allow: made from the examples, by the schemas' own bounds."""

import json
from typing import Any

from recollect_gateway.bodies import MAX_VALUES
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec

MAX_BYTES = 3_500_000
"""Of the arguments of one call: what surrounds them fits into a request beside them."""

LEAST_SHARE = 1 / 1024
"""Of what the bounds allow, what is tried first; it is doubled as long as it fits."""

WORD = "abcdefghijklmnopqrstuvwxyz-0123456789 "
AMOUNTS = frozenset({"limit", "depth", "max_depth", "maxDepth", "max_nodes", "maxPaths", "max_paths", "token_budget"})
"""Arguments of which more is more to do."""


def worst_call(tool: ToolSpec, example: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an example, with lists as long and texts as long as they may be and fit into a request."""
    schema, share = json_schema(tool.arguments), LEAST_SHARE
    worst = example
    while share <= 1:  # From below: all bounds together are gigabytes.
        larger: dict[str, Any] = _enlarged(schema, example, share)
        told = json.dumps(larger)
        if len(told) > MAX_BYTES or told.count(",") + told.count("[") + told.count("{") > MAX_VALUES:
            break
        worst, share = larger, share * 2
    return worst


def _enlarged(schema: dict[str, Any], value: Any, share: float, name: str = "") -> Any:
    options = schema.get("anyOf", [schema])
    bounds = next((option for option in options if _takes(option, value)), schema)
    if isinstance(value, dict):
        fields = bounds.get("properties", {})
        return {key: _enlarged(fields.get(key, {}), item, share, key) for key, item in value.items()}
    if isinstance(value, list) and value:
        count = max(int(bounds.get("maxItems", 100) * share), len(value))
        first = _enlarged(bounds.get("items", {}), value[0], share)
        return [*value, *(_varied(first, number) for number in range(len(value), count))]
    if isinstance(value, str) and not {"enum", "const", "pattern", "format"} & bounds.keys():
        length = int(bounds.get("maxLength", 0) * share)
        return (value + " " + WORD * (length // len(WORD) + 1))[:length] if length > 100 else value
    return bounds.get("maximum", value) if name in AMOUNTS and isinstance(value, int) else value


def _takes(schema: dict[str, Any], value: Any) -> bool:
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    kind = schema.get("type")
    return isinstance(kind, str) and kind in kinds and isinstance(value, kinds[kind])  # type: ignore[arg-type]


def _varied(value: Any, number: int) -> Any:
    """The same with other texts, as far as they are free."""
    if isinstance(value, dict):
        return {key: _varied(item, number) for key, item in value.items()}
    if isinstance(value, str) and len(value) > 100:
        return f"{number} {value}"[: len(value)]
    return value
