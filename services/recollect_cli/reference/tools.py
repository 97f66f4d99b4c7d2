"""`docs/tools.md` and `docs/tools/`: every tool of the catalogue, the resources and the prompts, for people to read."""

import json
from collections.abc import Iterator

from recollect_cli.reference.examples import EXAMPLES, Example
from recollect_cli.reference.glossary import GLOSSARY, TOOLSETS
from recollect_cli.reference.wording import Schema, cell, listed, literal, shape_of, type_of
from recollect_gateway.mcp_endpoint.pages import PAGE_BYTES, PAGE_ROWS
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PROMPTS
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import GRAPH_VIEW
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import ALL_GRAPHS, OFFICIAL, TEMPLATES, TOOL
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.server import MAX_RESULT_CHARACTERS
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, DEFAULT_TOOLSETS
from recollect_gateway.mcp_endpoint.unknown_arguments import CLIENT_ARGUMENTS, MAX_IGNORED

CLIENTS = {
    "the structured content": "Claude Code, Codex, Cursor",
    "the text": "Claude.ai, ChatGPT, opencode (since July 2026), Open WebUI, Kimi Code",
    "both": "Copilot's command line, its plugin for IntelliJ",
}
"""Clients by which of a result's two forms they pass to their models."""

SHARED = ("graph", "as_of")
"""Arguments that mean the same on every tool: explained once, at the top."""

_APPS = "https://modelcontextprotocol.io/extensions/apps/overview"


PAGES = tuple(toolset for toolset in TOOLSETS if any(toolset in tool.toolsets for tool in CATALOGUE))
"""The toolsets, each of which has a page."""

_MADE = "<!-- Made from the catalogue by `make pages`: change the code, not this page. -->"


def tools_page() -> str:
    """`docs/tools.md`: what holds of every tool, and which there are."""
    return "\n".join([*_opening(), *_contents(), *_conventions(), *_resources(), *_prompts()])


def toolset_page(toolset: str) -> str:
    """`docs/tools/{toolset}.md`: the tools of a toolset; those of several are described in the first."""
    own = [tool for tool in CATALOGUE if _home(tool) == toolset]
    guests = [tool for tool in CATALOGUE if toolset in tool.toolsets and tool not in own]
    lines = [_MADE, "", f"# {toolset}", "", TOOLSETS[toolset], ""]
    lines += [f"At the address `/mcp/x/{toolset}`. [What holds of every tool](../tools.md).", ""]
    lines += ["| tool | | what it is for |", "|---|---|---|"]
    lines += [f"| {_link(tool, toolset)} | {_does(tool)} | {cell(tool.description)} |" for tool in [*own, *guests]]
    return "\n".join([*lines, "", *(line for tool in own for line in _tool(tool))])


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
        _MADE,
        "",
        "# Tools",
        "",
        "What an agent can call, by toolset, and what holds of every tool; then the resources and prompts.",
        "",
        f"A client that asks for nothing is offered {listed(f'`{name}`' for name in sorted(DEFAULT_TOOLSETS))}. The "
        "address `/mcp/x/{toolset}` or the header `X-MCP-Toolsets` offers another, `all` offers all, and "
        "`X-MCP-Readonly: true` leaves out what writes; so does whatever is not `false`, `0`, `no` or `off`. A "
        "credential is offered what its scopes allow.",
        "",
    )


def _contents() -> Iterator[str]:
    yield from ("| toolset | tools | what it is |", "|---|---:|---|")
    for toolset in PAGES:
        count = sum(toolset in tool.toolsets for tool in CATALOGUE)
        yield f"| [{toolset}](tools/{toolset}.md) | {count} | {cell(TOOLSETS[toolset])} |"
    yield ""
    names = " ".join(f"[`{tool.name}`](tools/{_home(tool)}.md#{tool.name})" for tool in _by_name())
    yield from (f"By name: {names}", "")


def _conventions() -> Iterator[str]:
    yield from (
        "`tools/list` tells each tool in few words, since every conversation pays for them: bounds, defaults and what "
        "is answered stand here, and in the resource `recollect://tools/{tool}`.",
        "",
        "A tool *reads* (`readOnlyHint`: PostgreSQL itself would refuse it a write), *writes*, or *takes away* "
        "(`destructiveHint`). A *repeatable* one (`idempotentHint`) changes nothing the second time.",
        "",
        "A result comes twice, as MCP asks: as structured content, and as text for clients that pass their model "
        "nothing else. In `agent` the text is lines, which take less than the JSON; elsewhere it is that JSON, since "
        "most clients pass on one of the two, and not all the same one. By what their users and makers report (2026):",
        "",
        "| what a client passes to its model | clients |",
        "|---|---|",
        *(f"| {form} | {clients} |" for form, clients in CLIENTS.items()),
        "",
        f"**Lists come in pages.** Where no `limit` is given, a reply ends with the last row that fits "
        f"{PAGE_BYTES:,} bytes, about 4,000 tokens, of its text and of its structured content, and after "
        f"{PAGE_ROWS} rows at most (fewer in some searches). It says where to go on: `next_offset` or `nextOffset` "
        "for `offset`, `next_cursor` for `cursor`, or `more` and the last row for what takes that. Where a `limit` is "
        "given, it comes whole, up to [the bound on any reply](limits.md#one-request). A row is never cut: one that "
        "is larger stands alone on its page, and of an entity with very many relations `cut` says that only the "
        "oldest are told. An offset counts in the list as it is then; give the same `as_of` with each page to read "
        "one moment, whatever is written meanwhile.",
        "",
        "What walks (`explore`, `traverse`, `extract_subgraph`, …) is no list: it tells the nearest, and `cut` what "
        "ended it. Told whole are single things, what the call names, exports, and `read_graph` without a `limit`: "
        "clients of the official server take that for the graph. `search_nodes` comes in pages, best first. Claude "
        "Code writes what exceeds 25,000 tokens to a file; tools whose answers have no page to end at tell it to take "
        f"{MAX_RESULT_CHARACTERS:,} characters (`anthropic/maxResultSizeChars`): {listed(_large())}.",
        "",
        "Two arguments mean the same everywhere, and are not repeated in the tables:",
        "",
        "- `graph`: the graph to use. Default: the credential's. The first write to a name makes it; reading one that "
        "is not there answers empty.",
        "- `as_of`, on most tools that read: the graph as it was, at a revision or a time like `2027-01-31T12:00:00Z`.",
        "",
        "All that is wrong with a call is told, a line each with its path (`entities.0.name: Required`); nothing was "
        "written then, and the call can be mended and repeated. In results, `?` marks what is left out where there is "
        "nothing to say.",
        "",
        "What clients do to arguments is undone, as far as it is plain what was meant:",
        "",
        "- A list, an object, a number or `true` and `false` may be sent as JSON text, at any depth, where no text is "
        'valid: `"[\\"tea\\"]"` for a list of tags. Where a text is valid, it is that text.',
        "- Null or an empty text for an optional argument counts as left out. An empty text does not where it narrows "
        "what is taken away (`actor` of `undo_changes`, `relation_type` of `delete_relation`, `olderThan` of "
        "`archive_entities`) or clears a field (`update_node`).",
        "- A time needs no offset, and may be a day: both are of the call's `time_zone`, else the graph's or its "
        "tenant's, else UTC (`startDate` and `endDate`: always UTC). A day is its beginning (`since`, `at`), or its "
        "end where it bounds from above (`until`, `to`, `at_time`, `as_of`).",
        "- An argument that the tool does not have is ignored, and a text after the answer names it: clients add their "
        f"own ({', '.join(f'`{name}`' for name in sorted(CLIENT_ARGUMENTS))}). It is refused where it resembles one of "
        "the tool's, at any depth, or names a tenant or a graph; where the tool takes away or has a dry run (but for "
        f"those four); inside objects; and among more than {MAX_IGNORED}.",
        "",
        "The management API takes only what its OpenAPI document says.",
        "",
    )


def _large() -> list[str]:
    return [f"`{tool.name}`" for tool in CATALOGUE if tool.large]


def _by_name() -> list[ToolSpec]:
    return sorted(CATALOGUE, key=lambda tool: tool.name)


def _resources() -> Iterator[str]:
    yield from ("## Resources", "")
    yield from (
        "JSON, of graphs for every credential that reads memory, of tools where they are offered; "
        "`memory://knowledge-graph` comes with the toolset `memory`. "
        "`resources/list` has the graphs, too, a hundred a page. What stands in braces is percent-encoded. A graph "
        "that the credential does not reach is as unknown as one that is not there. `completion/complete` completes "
        "names of graphs, nodes and tools, whatever their case.",
        "",
    )
    yield from ("| address | what it tells |", "|---|---|")
    fixed = [(resource.uri, resource.description) for resource in (OFFICIAL, ALL_GRAPHS)]
    templates = [(template.uri_template, template.description) for template in (*TEMPLATES, TOOL)]
    yield from (f"| `{uri}` | {cell(description or '')} |" for uri, description in [*fixed, *templates])
    yield ""
    yield from (
        f"A client that shows pages beside answers ([MCP Apps]({_APPS})) is told of `{GRAPH_VIEW}` with `explore`: it "
        "draws the nodes and relations that were found, for keyboard and mouse, in the client's light or dark, and "
        "explores on from the node that is chosen, where the client lets it. The page is one document that asks for "
        "nothing, and is handed what it shows by the client that frames it. Others read the text, as before. At "
        "revisions before 2026-07-28 nobody knows what a client shows, since it says so once and there are no "
        "sessions: it is told of the page.",
        "",
    )


def _prompts() -> Iterator[str]:
    yield from ("## Prompts", "", "Each is offered where the tools are that it tells the agent to call.", "")
    yield from ("| prompt | arguments | what it asks of the agent | tools |", "|---|---|---|---|")
    for prompt in PROMPTS.values():
        arguments = ", ".join(f"`{argument.name}`{'' if argument.required else '?'}" for argument in prompt.arguments)
        tools = ", ".join(f"`{name}`" for name in sorted(prompt.tools))
        yield f"| `{prompt.name}` | {arguments} | {cell(prompt.description)} | {tools} |"
    yield ""


def _home(tool: ToolSpec) -> str:
    """The toolset under which a tool is described: the first of its toolsets."""
    return next(toolset for toolset in TOOLSETS if toolset in tool.toolsets)


def _tool(tool: ToolSpec) -> Iterator[str]:
    arguments = json_schema(tool.arguments)
    own = list(_arguments(arguments))
    shared = [f"`{name}`" for name in SHARED if name in arguments["properties"]]
    other_toolsets = sorted(tool.toolsets - {_home(tool)})
    hints = [*_hints(tool), *(f"also in `{toolset}`" for toolset in other_toolsets)]
    yield from (f"## `{tool.name}`", "", tool.description, "", f"{' · '.join(hints)}", "")
    if tool.name in EXAMPLES:
        yield from _example(EXAMPLES[tool.name])
    if own:
        yield from ("| argument | type | default | meaning |", "|---|---|---|---|")
        yield from (_row(*argument) for argument in own)
        yield ""
    yield from (
        f"{'And' if own else 'Takes'} {listed(shared)}. Answers:" if shared else "Answers:",
        "",
        "```",
        shape_of(json_schema(tool.result)),
        "```",
        "",
    )
    for dialect in tool.dialects:
        yield from _dialect(tool, dialect)


def _example(example: Example) -> Iterator[str]:
    yield from ("For example:", "", "```json", json.dumps(example.arguments, ensure_ascii=False), "```", "")
    yield from ("The text of the answer (… stands for an id, or the day):", "", "```", example.text, "```", "")


def _dialect(tool: ToolSpec, dialect: ToolSpec) -> Iterator[str]:
    """The differences of a tool in other toolsets."""
    chosen = listed(f"`{toolset}`" for toolset in sorted(dialect.toolsets))
    if dialect.result is tool.result and dialect.arguments is tool.arguments:
        yield from (f"Where {chosen} is chosen without this toolset, errors are told as the others of {chosen} do.", "")
        return
    own, new = json_schema(tool.arguments)["properties"], json_schema(dialect.arguments)
    added = [path for path, _, _ in _arguments(new) if path.split("[")[0].split(".")[0] not in own]
    takes = f" takes {listed(f'`{path}`' for path in added)} too, and" if added else ""
    yield from (f"Where {chosen} is chosen without this toolset, it{takes} answers:", "", "```")
    yield from (shape_of(json_schema(dialect.result)), "```", "")


def _hints(tool: ToolSpec) -> Iterator[str]:
    yield f"*{_does(tool)}*"
    yield f"scope `{tool.scope}`"
    # A tool that only reads may always be repeated.
    if tool.idempotent and not tool.read_only:
        yield "repeatable"


def _does(tool: ToolSpec) -> str:
    return "reads" if tool.read_only else "takes away" if tool.destructive else "writes"


def _arguments(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """Arguments and those nested in them: dotted path, schema, and whether it is required."""
    for name, field in schema.get("properties", {}).items():
        if path or name not in SHARED:
            yield f"{path}{name}", field, name in schema.get("required", ())
            yield from _arguments(field.get("items", {}), f"{path}{name}[].")
            yield from _arguments(field, f"{path}{name}.")


def _row(path: str, schema: Schema, required: bool) -> str:
    default = (
        "**required**" if required else f"`{literal(schema['default'])}`" if schema.get("default", "") != "" else ""
    )
    return f"| `{path}` | {type_of(schema)} | {default} | {cell(_meaning(path, schema))} |"


def _meaning(path: str, schema: Schema) -> str:
    options = (schema, *schema.get("anyOf", ()))
    descriptions: list[str] = [option["description"] for option in options if "description" in option]
    return descriptions[0] if descriptions else GLOSSARY.get(path.rsplit(".", 1)[-1], "")


def _link(tool: ToolSpec, toolset: str) -> str:
    """A link to the description of a tool, from the page of a toolset."""
    page = "" if _home(tool) == toolset else f"{_home(tool)}.md"
    return f"[`{tool.name}`]({page}#{tool.name})"
