"""Tools as data: the specification of a tool, its arguments and its answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, ClassVar, get_type_hints

import msgspec
from mcp_types import CallToolResult, InputRequiredResult, Tool

from recollect.caller import Caller, Scope
from recollect.errors import TooLarge
from recollect.jobs.model import Job
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.errors import tool_error
from recollect_gateway.mcp_endpoint.rounds import ElicitationRound
from recollect_http.requests.argument_types import AsOf, GraphChoice, as_text


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of a tool's arguments; `unknown_arguments.py` decides which unknown ones are ignored.

    `read_one_by_one`: lists whose items the handler parses, so that a malformed item fails alone. `files`: texts that
    are whole files, whose faults are reported with their lines.
    """

    read_one_by_one: ClassVar[frozenset[str]] = frozenset()
    files: ClassVar[frozenset[str]] = frozenset()

    graph: GraphChoice | None = None


class ReadArguments(Arguments, kw_only=True, frozen=True):
    """Base of the arguments of a tool that can read the past."""

    raw_as_of: AsOf | None = msgspec.field(default=None, name="as_of")

    @property
    def as_of(self) -> str | None:
        """The revision or time to read at; None for now."""
        return as_text(self.raw_as_of)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers: structured content, and the text beside it (default: the structured content as JSON).

    `bare`: the text is the first field alone, an array. `note`: a second text, which says what was left out and how to
    get it; the first stays as clients parse it. `job`: the job that does the rest of the work.
    """

    structured: msgspec.Struct
    text: str | None = None
    note: str | None = None
    bare: bool = False
    job: Job | None = None


def require_within(encoded: bytes, max_bytes: int | None) -> None:
    """Raise TooLarge for an answer, encoded as JSON, of more bytes than `max_bytes`; None is no bound."""
    if max_bytes is not None and len(encoded) > max_bytes:
        raise TooLarge(
            f"The answer has {len(encoded)} bytes, but a reply may have at most {max_bytes}. Ask for less: limit"
        )


@dataclass(frozen=True, slots=True)
class PagedReply:
    """A reply that may leave out its last rows.

    `render` makes the reply with the first rows: with so many, at least one if there are any. `render_first_row` makes
    the reply with the first row alone and some of the `attached_count` items that belong to it, for a row that is
    larger than a page with all of them. `pages`: how many pages the reply may fill; None: any number. `related_items`:
    how many items of other kinds, such as relations, come with all rows.
    """

    row_count: int
    render: Callable[[int], Reply]
    attached_count: int = 0
    render_first_row: Callable[[int], Reply] | None = None
    pages: int | None = 1
    related_items: int = 0


Handler = Callable[[Call, Any], Awaitable[Reply | PagedReply | CallToolResult]]
"""A function that answers a call, given the tool's arguments. A CallToolResult, which may hold more than text and
structured content, is sent as it is."""

Asker = Callable[[Call, Any, ElicitationRound], Awaitable[InputRequiredResult | None]]
"""A function that makes the question that a client must answer before the tool runs. It returns None where there is no
question, or where it is answered."""

JobRenderer = Callable[[Call, Job], Awaitable[Reply | CallToolResult]]
"""A function that makes a tool's answer, once the job that the tool started has succeeded."""

ErrorRenderer = Callable[[Exception], CallToolResult]
Substitute = Callable[[Services], Awaitable[Reply]]
"""A function that answers instead of a tool's handler, while the database is unreachable and the caller is unknown. Its
answer has nothing of any tenant."""


@dataclass(frozen=True, slots=True)
class LongWork:
    """The kind of the jobs that a tool starts, and the function that renders the result of one.

    `mode`: the `mode` in the arguments of this tool's jobs, if several tools start jobs of the kind.
    """

    kind: str
    render: JobRenderer
    mode: str | None = None

    def starts(self, job: Job) -> bool:
        """Whether the tool starts jobs like this one, even if another tool or a route started this one."""
        return job.kind == self.kind and self.mode in (None, job.arguments.get("mode"))


FROM_HANDLER = msgspec.Struct
"""The value of `ToolSpec.arguments` that means: the type of the handler's second parameter."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool of the catalogue.

    Four fields are derived unless they are given: `name` is the handler's name, `title` the name in words, `arguments`
    the type that the handler takes, and a tool that only reads is `idempotent`. `needs`: the scope of the route that
    does the same, if it is not the scope for reading or for writing memories.

    `render_error` renders errors in the dialect of the tool's toolset. `substitute`: for a tool that reports an
    unavailable database by a result that is not an error. `dialects`: the tool as other toolsets offer it; a dialect is
    used if none of the tool's own toolsets is selected. `ask` runs before the handler, at revisions of the protocol at
    which a server can ask its client. `work`: for a tool that may start a job. `listed`: the tool as `tools/list` has
    it, if that does not follow from its types. `view`: the address of the page that shows its answer, for clients that
    show pages. `large`: its answer is not cut into pages, so clients are asked to take a long one whole.
    """

    description: str
    toolsets: frozenset[str]
    result: type[msgspec.Struct]
    handler: Handler
    name: str = ""
    arguments: type[msgspec.Struct] = FROM_HANDLER
    title: str = ""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    needs: Scope | None = None
    render_error: ErrorRenderer = tool_error
    substitute: Substitute | None = None
    dialects: tuple["ToolSpec", ...] = ()
    ask: Asker | None = None
    work: LongWork | None = None
    view: str | None = None
    large: bool = False
    listed: Tool | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        named = self.name or getattr(self.handler, "__name__", "")
        derived = {
            "name": named,
            "arguments": _arguments_of(self.handler) if self.arguments is FROM_HANDLER else self.arguments,
            "title": self.title or named.replace("_", " ").title(),
            "idempotent": self.idempotent or self.read_only,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def dialect_for(self, chosen: frozenset[str]) -> "ToolSpec":
        """The tool in the dialect of the chosen toolsets: its own if one of its own toolsets is among them."""
        guest_toolsets = frozenset[str]().union(*(dialect.toolsets for dialect in self.dialects))
        if (self.toolsets - guest_toolsets) & chosen:
            return self
        return next((dialect for dialect in self.dialects if dialect.toolsets & chosen), self)

    @property
    def scope(self) -> Scope:
        """The scope that a credential needs for it."""
        return self.needs or (Scope.MEMORY_READ if self.read_only else Scope.MEMORY_WRITE)


def _arguments_of(handler: Handler) -> type[msgspec.Struct]:
    """The type of a handler's second parameter."""
    taken: type[msgspec.Struct] = get_type_hints(handler)[list(signature(handler).parameters)[1]]
    return taken


@dataclass(frozen=True, slots=True)
class Selection:
    """The toolsets that one request selects, and whether it selects only tools that read."""

    toolsets: frozenset[str]
    read_only: bool = False

    def selects(self, tool: ToolSpec) -> bool:
        """Whether the request selects the tool, regardless of what its caller may do."""
        return bool(tool.toolsets & self.toolsets) and (tool.read_only or not self.read_only)

    def offers(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is listed for this caller, and may be called. One filter decides both."""
        return self.may_offer(tool, caller) and caller.may(tool.scope)

    def may_offer(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is offered to this caller, or would be if the caller's scopes allowed it."""
        return self.selects(tool) and bool(tool.toolsets & self.chosen(caller))

    def chosen(self, caller: Caller) -> frozenset[str]:
        """The selected toolsets that the credential reaches."""
        return self.toolsets if caller.toolsets is None else self.toolsets & caller.toolsets
