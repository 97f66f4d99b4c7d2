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
"""Answers a call with its arguments; a CallToolResult, which may hold more than text and structure, is sent as is."""

Asker = Callable[[Call, Any, ElicitationRound], Awaitable[InputRequiredResult | None]]
"""Makes the question that a client must answer before a tool does anything; None: there is none, or it is answered."""

JobRenderer = Callable[[Call, Job], Awaitable[Reply | CallToolResult]]
"""Makes a tool's answer once the job that it started has succeeded."""

ErrorRenderer = Callable[[Exception], CallToolResult]
Substitute = Callable[[Services], Awaitable[Reply]]
"""Answers in a tool's place while the database is unreachable and the caller is unknown: with nothing of any tenant."""


@dataclass(frozen=True, slots=True)
class LongWork:
    """The jobs that a tool starts, and how it renders the result of one.

    `mode`: where several tools start jobs of the kind, this tool's are those whose arguments have this mode.
    """

    kind: str
    render: JobRenderer
    mode: str | None = None

    def starts(self, job: Job) -> bool:
        """Whether the tool starts such jobs, even if this one was started in another way."""
        return job.kind == self.kind and self.mode in (None, job.arguments.get("mode"))


FROM_HANDLER = msgspec.Struct
"""The arguments of a tool: those that its handler takes."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool of the catalogue.

    Its scope follows from whether it writes, unless it `needs` another: the one of the route that does the same. Its
    `name` is that of its handler, its `arguments` are those that the handler takes, its `title` is the name in words,
    and it is `idempotent` if it only reads, unless these say otherwise.

    `render_error` renders errors in the dialect of its toolset. `substitute`: for a tool that reports an unavailable
    database by a result that is no error. `dialects`: the tool as other toolsets offer it, in which it is a guest; each
    applies where none of the tool's own toolsets is selected. `ask` runs before the handler, at revisions where a
    server can ask its client. `work`: for a tool that may start a job. `listed`: how the tool is listed where that does
    not follow from its types. `view`: the address of the page that shows its answer, for clients that show pages.
    `large`: its answer has no page at which it ends, so clients are told to take a long one whole.
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
    """What one request is offered: toolsets by name, and whether only tools that read."""

    toolsets: frozenset[str]
    read_only: bool = False

    def selects(self, tool: ToolSpec) -> bool:
        """Whether the request selects the tool, whatever its caller may do."""
        return bool(tool.toolsets & self.toolsets) and (tool.read_only or not self.read_only)

    def offers(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is listed for this caller, and may be called: one filter decides both."""
        return self.may_offer(tool, caller) and caller.may(tool.scope)

    def may_offer(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is offered to this caller, or would be if the caller's scopes allowed it."""
        return self.selects(tool) and bool(tool.toolsets & self.chosen(caller))

    def chosen(self, caller: Caller) -> frozenset[str]:
        """The selected toolsets, as far as the credential reaches them."""
        return self.toolsets if caller.toolsets is None else self.toolsets & caller.toolsets
