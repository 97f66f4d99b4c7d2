"""`docs/tools.md`: every tool of the catalogue, for people to read."""

from collections.abc import Iterable, Iterator
from typing import Any

from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE, DEFAULT_TOOLSETS
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec

Schema = dict[str, Any]

LINE = 100
"""Characters of a line of a result's shape at most, before it is broken."""

SHARED = ("graph", "as_of")
"""Arguments that mean the same on every tool: said once, at the top."""

TOOLSETS = {
    "agent": "Six verbs made for models, and the default: small to list, compact to read.",
    "memory": "Drop-in for the official memory server and the mcp-memory crate: the same names, arguments and results. "
    "Array replies stand bare in the text, and under one key in the structured content.",
    "organize": "The enhanced memory server: hierarchy, tags and importance. Entities come with `tags`, `importance`, "
    "`createdAt`, `lastModified` and `parentId`, the parent's name.",
    "facts": 'The graph-memory contract: `{"success": true, …}`, or `{"success": false, "error", "error_code"}`; times '
    "in milliseconds; `owner_id` is the graph.",
    "lineage": "The memgraph package: graphs, immutable versions and conflicts, edges that may lead into other graphs.",
}
"""What each toolset is, in the order of the page."""

GLOSSARY = {
    "about": "Names of the entities it is about",
    "as_of": "Read as it was",
    "based_on_version": "The version that you read; if it is no longer the newest, that is a conflict",
    "created_by": "Who made it, in your own terms: stored, never interpreted",
    "deletions": "What to take away, by entity",
    "depth": "Steps at most",
    "direction": "Which way relations are followed",
    "entities": "The entities",
    "entity_type": "Type of the entity",
    "entityType": "Type of the entities",
    "fact_id": "The fact",
    "fact_ids": "The facts that are summarised",
    "fresh_only": "Leave out what its freshness date calls stale",
    "from_id": "The node where it starts",
    "id": "Its id",
    "ids": "Memories or nodes by id",
    "importance": "From 0, hardly worth keeping, to 10",
    "include_outdated": "Outdated ones too",
    "include_relations": "Also say how they are related",
    "items": "What to remember, each on its own",
    "kind": "What sort of thing it is: person, project, …",
    "kinds": "Only of these kinds",
    "limit": "How many at most",
    "links": "Nodes to link it to",
    "max_nodes": "Nodes at most",
    "max_paths": "Paths at most",
    "maxImportance": "Only so important at most",
    "metadata": "Anything of your own, kept and given back",
    "min_importance": "Only so important or more",
    "minImportance": "Only so important or more",
    "mode": "`outdated`: kept, no longer recalled; `delete`: gone from the present",
    "name": "Its name",
    "names": "Entities by name",
    "node_id": "The node",
    "node_type": "What it is",
    "node_types": "Only facts, only entities, or both",
    "object": "Where the relation ends, by name",
    "object_value": "Where the relation ends, by name",
    "observations": "Statements about the entity",
    "offset": "How many to pass over",
    "predicate": "What the relation says",
    "predicates": "Only relations that say this",
    "properties": "Anything of your own, kept with the relation",
    "query": "A question or a few words",
    "reason": "Why, for whoever reads the history",
    "relation_type": "What the relation says",
    "relations": "The relations",
    "since": "Said at this time or later",
    "source": "Where it came from",
    "status": "Where it stands in its life",
    "subject": "Where the relation starts, by name",
    "summary_text": "The summary",
    "tags": "Tags, whatever their case",
    "text": "The new text",
    "to_id": "The node where it ends",
    "triples": "Relations as subject, predicate and object",
    "until": "Said at this time or earlier",
}
"""Meanings of arguments whose schema does not say them: a model is spared what a person may want to read."""


def tools_page() -> str:
    """`docs/tools.md`."""
    offered = [toolset for toolset in TOOLSETS if any(toolset in tool.toolsets for tool in CATALOGUE)]
    return "\n".join([*_opening(), *(line for toolset in offered for line in _toolset(toolset))])


def unexplained() -> list[str]:
    """Arguments, as `tool.path`, that neither their schema nor the glossary explains."""
    return [
        f"{tool.name}.{path}"
        for tool in CATALOGUE
        for path, schema, _ in _arguments(json_schema(tool.arguments))
        if not _meaning(path, schema)
    ]


def _opening() -> Iterator[str]:
    yield from (
        "# Tools",
        "",
        "Every tool, by toolset. Made from the catalogue by `recollect reference tools`; do not edit.",
        "",
        f"A client that asks for nothing is offered {_listed(f'`{name}`' for name in sorted(DEFAULT_TOOLSETS))}. The "
        "address `/mcp/x/{toolset}` or the header `X-MCP-Toolsets` offers another, `all` offers all, and "
        "`X-MCP-Readonly: true` leaves out what writes. A credential is offered what its scopes allow.",
        "",
        "A tool *reads* (`readOnlyHint`: PostgreSQL itself would refuse it a write), *writes*, or *takes away* "
        "(`destructiveHint`). A *repeatable* one (`idempotentHint`) changes nothing the second time.",
        "",
        "Two arguments mean the same everywhere, and are not repeated in the tables:",
        "",
        "- `graph`: the graph to use. Default: the credential's. The first write to a name makes it; reading one that "
        "is not there answers empty.",
        "- `as_of`, on most tools that read: the graph as it was, at a revision or a time like `2027-01-31T12:00:00Z`.",
        "",
        "What is wrong with a call is told by its path (`entities.0.name: Required`); nothing was written then, and "
        "the call can be mended and repeated. In results, `?` marks what is left out where there is nothing to say.",
        "",
    )


def _toolset(toolset: str) -> Iterator[str]:
    own = [tool for tool in CATALOGUE if _home(tool) == toolset]
    guests = [tool for tool in CATALOGUE if toolset in tool.toolsets and tool not in own]
    yield from (f"## {toolset}", "", TOOLSETS[toolset], "")
    yield from ("| tool | | what it is for |", "|---|---|---|")
    yield from (f"| {_link(tool)} | {_does(tool)} | {_cell(tool.description)} |" for tool in [*own, *guests])
    yield ""
    for tool in own:
        yield from _tool(tool)


def _home(tool: ToolSpec) -> str:
    """The toolset under which a tool is described: the first, where it stands in several."""
    return next(toolset for toolset in TOOLSETS if toolset in tool.toolsets)


def _tool(tool: ToolSpec) -> Iterator[str]:
    arguments = json_schema(tool.arguments)
    own = list(_arguments(arguments))
    shared = _listed(f"`{name}`" for name in SHARED if name in arguments["properties"])
    elsewhere = sorted(tool.toolsets - {_home(tool)})
    hints = [*_hints(tool), *(f"also in `{toolset}`" for toolset in elsewhere)]
    yield from (f"### `{tool.name}`", "", tool.description, "", f"{' · '.join(hints)}", "")
    if own:
        yield from ("| argument | type | default | meaning |", "|---|---|---|---|")
        yield from (_row(*argument) for argument in own)
        yield ""
    yield from (
        f"{'And' if own else 'Takes'} {shared}. Answers:",
        "",
        "```",
        _shape(json_schema(tool.result)),
        "```",
        "",
    )


def _hints(tool: ToolSpec) -> Iterator[str]:
    yield f"*{_does(tool)}*"
    yield f"scope `{tool.scope}`"
    # That a tool that reads may be repeated goes without saying.
    if tool.idempotent and not tool.read_only:
        yield "repeatable"


def _does(tool: ToolSpec) -> str:
    return "reads" if tool.read_only else "takes away" if tool.destructive else "writes"


def _arguments(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """Arguments with those inside them: dotted path, schema, whether it must be given."""
    for name, field in schema.get("properties", {}).items():
        if path or name not in SHARED:
            yield f"{path}{name}", field, name in schema.get("required", ())
            yield from _arguments(field.get("items", {}), f"{path}{name}[].")
            yield from _arguments(field, f"{path}{name}.")


def _row(path: str, schema: Schema, required: bool) -> str:
    default = (
        "**required**" if required else f"`{_literal(schema['default'])}`" if schema.get("default", "") != "" else ""
    )
    return f"| `{path}` | {_type(schema)} | {default} | {_cell(_meaning(path, schema))} |"


def _meaning(path: str, schema: Schema) -> str:
    options = (schema, *schema.get("anyOf", ()))
    said: list[str] = [option["description"] for option in options if "description" in option]
    return said[0] if said else GLOSSARY.get(path.rsplit(".", 1)[-1], "")


def _type(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return _listed((f"`{_literal(value)}`" for value in schema["enum"]), "or")
    match schema.get("type"):
        case "array":
            count = _between(schema, "minItems", "maxItems", "entries").removeprefix(", ").removesuffix(" entries")
            return f"list ({count}) of {_type(schema.get('items', {}))}"
        case "string":
            return _text(schema)
        case "integer" | "number" as number:
            word = "whole number" if number == "integer" else "number"
            return word + _above(schema) + _between(schema, "minimum", "maximum", "")
        case "boolean":
            return "yes or no"
        case "object" | "null" as word:
            return str(word)
    return "anything"


def _text(schema: Schema) -> str:
    match schema.get("format"):
        case "date-time":
            return "time"
        case "uuid":
            return "id"
    shape = f", like `{_cell(schema['pattern'])}`" if "pattern" in schema else ""
    return "text" + _between(schema, "minLength", "maxLength", "characters") + shape


def _above(schema: Schema) -> str:
    return f", more than {_number(schema['exclusiveMinimum'])}" if "exclusiveMinimum" in schema else ""


def _between(schema: Schema, least: str, most: str, unit: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if high is None:
        return "" if not low and unit else "" if low is None else f", {_number(low)} or more {unit}".rstrip()
    bounds = f"at most {_number(high)}" if low is None or (unit and not low) else f"{_number(low)} to {_number(high)}"
    return f", {bounds} {unit}".rstrip()


def _number(value: float) -> str:
    return f"{value:,}".removesuffix(".0")


def _literal(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _shape(schema: Schema, indent: str = "") -> str:
    """A result as one line where it fits, else a line each field."""
    flat = _flat(schema)
    fields = schema.get("properties") or schema.get("items", {}).get("properties")
    if len(indent) + len(flat) <= LINE or not fields:
        return flat
    owner = schema if "properties" in schema else schema["items"]
    inner = indent + "  "
    lines = [f"{inner}{_field(name, owner)}: {_shape(field, inner)}," for name, field in fields.items()]
    body = "\n".join(["{", *lines, indent + "}"])
    return body if "properties" in schema else f"[{body}, …]"


def _flat(schema: Schema) -> str:
    if "anyOf" in schema:
        return " | ".join(_flat(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            return "{" + ", ".join(f"{_field(n, schema)}: {_flat(f)}" for n, f in schema["properties"].items()) + "}"
        case "object":
            values = schema.get("additionalProperties")
            return f"{{…: {_flat(values)}}}" if isinstance(values, dict) and values else "{…}"
        case "array":
            return f"[{_flat(schema.get('items', {}))}, …]"
        case "string":
            return "time" if schema.get("format") == "date-time" else "text"
        case str(simple):
            return {"boolean": "true | false"}.get(simple, simple)
    return "anything"


def _field(name: str, owner: Schema) -> str:
    return name if name in owner.get("required", ()) else f"{name}?"


def _link(tool: ToolSpec) -> str:
    return f"[`{tool.name}`](#{tool.name})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _listed(words: Iterable[str], conjunction: str = "and") -> str:
    *rest, last = words
    return f"{', '.join(rest)} {conjunction} {last}" if rest else last
