"""The largest calls that the schemas of tools and routes allow, by the schemas' own bounds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_http.requests.bodies import MAX_MEMBERS, MAX_VALUES

MAX_BYTES = 3_500_000
"""The maximum size of the arguments of one call, which leaves room in a request for the rest."""

LEAST_SHARE = 1 / 1024
"""The share of the bounds that is tried first; it is doubled as long as the call fits."""

WORD = "abcdefghijklmnopqrstuvwxyz-0123456789 "
AMOUNTS = frozenset({"limit", "depth", "max_depth", "maxDepth", "max_nodes", "maxPaths", "max_paths", "token_budget"})
"""Arguments whose larger values mean more work."""

STAND_IN = "00000000-0000-7000"
"""The beginning of placeholder ids in the examples."""


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """One request of the management API. `body` is sent as it is; None means no body."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    media_type: str = "application/json"


def worst_requests(document: dict[str, Any], method: str, path: str, named: Mapping[str, str]) -> list[RouteRequest]:
    """Requests of an operation that ask for and send as much as its schemas allow, one for each type of body.

    `named`: what stands for the parameters of the path.
    """
    operation = document["paths"][path][method]
    asked = [given for given in operation.get("parameters", []) if given["in"] == "query"]
    amounts = {given["name"]: given["schema"]["maximum"] for given in asked if given["name"] in AMOUNTS}
    needed = {given["name"]: _inlined(given["schema"], document) for given in asked if given.get("required")}
    amounts |= {name: _enlarged(schema, _least(schema), 1) for name, schema in needed.items()}
    place = path.format(**named)
    bodies = operation.get("requestBody", {}).get("content", {})
    if not bodies:
        return [RouteRequest(method, place, amounts)]
    if set(FILES) <= set(bodies):
        return [RouteRequest(method, place, amounts, body, media_type) for media_type, body in FILES.items()]
    schema = _inlined(bodies["application/json"]["schema"], document)
    body = json.dumps(_enlarged_to_fit(schema, _least(schema))).encode()
    return [RouteRequest(method, place, amounts, body)]


def least_request(document: dict[str, Any], method: str, path: str, named: Mapping[str, str]) -> RouteRequest:
    """The smallest request of an operation that reaches its work; `named` as above."""
    operation = document["paths"][path][method]
    needed = {
        given["name"]: _least(_inlined(given["schema"], document))
        for given in operation.get("parameters", [])
        if given["in"] == "query" and given.get("required")
    }
    bodies = operation.get("requestBody", {}).get("content", {})
    if not bodies:
        return RouteRequest(method, path.format(**named), needed)
    if "application/json" not in bodies or set(FILES) <= set(bodies):
        line = b'{"type":"entity","name":"e","entityType":"t","observations":[]}'
        return RouteRequest(method, path.format(**named), needed, line, "application/x-ndjson")
    schema = _inlined(bodies["application/json"]["schema"], document)
    return RouteRequest(method, path.format(**named), needed, json.dumps(_needed(schema)).encode())


def _needed(schema: dict[str, Any]) -> Any:
    """A small value that is valid by the schema, with the required properties."""
    least = _least(schema)
    return {key: least[key] for key in schema.get("required", ())} if isinstance(least, dict) else least


_ENTITIES = [f'"name":"e {n}","entityType":"t","observations":["{"x " * 1_500}"]}}' for n in range(1_000)]
FILES = {
    "application/x-ndjson": "\n".join(f'{{"type":"entity",{entity}' for entity in _ENTITIES).encode(),
    "application/json": f'{{"entities":[{",".join("{" + entity for entity in _ENTITIES)}],"relations":[]}}'.encode(),
    "text/csv": b"name,entityType,observations\n" + b"".join(b"c %d,t,%s\n" % (n, b"x " * 1_500) for n in range(1_000)),
    "application/graphml+xml": b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    + b"".join(b'<node id="g %d"/>' % n for n in range(1_000))
    + b"</graph></graphml>",
}
"""A file of each importable type, with as many entities as one request may have."""

_PLAIN = {"date-time": "2026-01-01T00:00:00Z", "uuid": "00000000-0000-7000-8000-000000000001"}


def _inlined(schema: Any, document: dict[str, Any]) -> Any:
    """A schema without references."""
    if isinstance(schema, list):
        return [_inlined(each, document) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document)
    whole = {key: _inlined(value, document) for key, value in schema.items()}
    for part in whole.pop("allOf", []):  # A reference that has a description of its own.
        whole = part | whole
    return {("anyOf" if key == "oneOf" else key): value for key, value in whole.items()}


def _least(schema: dict[str, Any]) -> Any:
    """A small value that is valid by the schema, with every property."""
    schema = next((option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"), schema)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {key: _least(value) for key, value in schema.get("properties", {}).items()}
        case "array":
            return [_least(schema.get("items", {}))]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "string":
            return _PLAIN.get(schema.get("format", ""), "text")
    return "text"


def worst_call(tool: ToolSpec, example: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an example, with lists and texts as long as allowed and as fit into a request."""
    worst: dict[str, Any] = _enlarged_to_fit(json_schema(tool.arguments), example)
    return worst


def on_graph(example: dict[str, Any], tool: ToolSpec, graph: str, name: str, node_id: str) -> dict[str, Any]:
    """The arguments of an example for another graph and one of its entities, with the largest limits."""
    arguments = json_schema(tool.arguments)
    schema, required = arguments["properties"], arguments.get("required", ())
    narrowing = {"as_of", "tags", "kinds", "entityType", "offset"}.difference(required)
    told = {key: value for key, value in example.items() if key not in narrowing}
    for key, value in told.items():
        if key in ("graph", "owner_id"):
            told[key] = graph
        elif key in AMOUNTS:
            told[key] = schema[key].get("maximum", value)
        elif key in ("name", "entityName", "start", "from", "source") and not _is_time(schema[key]):
            told[key] = name
        elif key in ("names", "entityNames"):
            told[key] = [name]
        elif key == "query":
            told[key] = name.split()[0]
        elif isinstance(value, str) and value.startswith(STAND_IN):
            told[key] = node_id
    return told


def _is_time(schema: dict[str, Any]) -> bool:
    return any(option.get("format") == "date-time" for option in schema.get("anyOf", [schema]))


def _enlarged_to_fit(schema: dict[str, Any], example: Any) -> Any:
    worst, share = example, LEAST_SHARE
    while share <= 1:  # It starts small, because arguments at all bounds would have gigabytes.
        larger = _enlarged(schema, example, share)
        told = json.dumps(larger)
        values = told.count(",") + told.count("[") + told.count("{")
        if len(told) > MAX_BYTES or values > MAX_VALUES or told.count(":") > MAX_MEMBERS:
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
    """The value with other texts, where any text is allowed."""
    if isinstance(value, dict):
        return {key: _varied(item, number) for key, item in value.items()}
    if isinstance(value, str) and len(value) > 100:
        return f"{number} {value}"[: len(value)]
    return value
