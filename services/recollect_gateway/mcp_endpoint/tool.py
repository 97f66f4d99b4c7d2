"""Tools as data: what one is, and what its handler is handed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
from mcp_types import CallToolResult, InputRequiredResult, Tool

from recollect.caller import Caller, Scope
from recollect.errors import TooLarge
from recollect.jobs.model import Job
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.errors import tool_error
from recollect_gateway.mcp_endpoint.rounds import Round
from recollect_gateway.shapes import AsOf, GraphChoice, as_text


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of a tool's arguments; unknown ones are told rather than ignored.

    `read_one_by_one`: lists of items that the handler parses, so that one which is wrong fails alone.
    """

    read_one_by_one: ClassVar[frozenset[str]] = frozenset()

    graph: GraphChoice | None = None


class ReadArguments(Arguments, kw_only=True, frozen=True):
    """Base of the arguments of a tool that can read the past."""

    told_as_of: AsOf | None = msgspec.field(default=None, name="as_of")

    @property
    def as_of(self) -> str | None:
        """The revision or time to read at; None for now."""
        return as_text(self.told_as_of)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers: structured content, and the text beside it (default: the structured content as JSON).

    `bare`: only its first field, an array, is the text. `note` is a second text, so that the first stays what clients
    parse: what was left out, and how to get it. `job` does what is not done yet.
    """

    structured: msgspec.Struct
    text: str | None = None
    note: str | None = None
    bare: bool = False
    job: Job | None = None


def require_within(encoded: bytes, max_bytes: int | None) -> None:
    """Raise TooLarge for an answer, as JSON, of more bytes than one reply may take; None is no bound."""
    if max_bytes is not None and len(encoded) > max_bytes:
        raise TooLarge(
            f"The answer takes {len(encoded)} bytes, more than one reply may ({max_bytes}). Ask for less: limit"
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """A reply that may leave out its last rows. `first` tells so many of its `rows`, 1 at least where there are any.

    `clipped` tells the first row with so many of the `attached` that come with it, for a row that fills more than a
    page by these. `pages`: how many pages it may fill; None where all is told. `related_items`: how many things of
    other kinds come with all of its rows, such as their relations.
    """

    rows: int
    first: Callable[[int], Reply]
    attached: int = 0
    clipped: Callable[[int], Reply] | None = None
    pages: int | None = 1
    related_items: int = 0


Handler = Callable[[Call, Any], Awaitable[Reply | Listing | CallToolResult]]
"""Answers a call with given arguments; a result that holds more than text and structure is told as it is."""

Asker = Callable[[Call, Any, Round], Awaitable[InputRequiredResult | None]]
"""What is to be asked of the client before a tool does anything; None: nothing, or it has been answered."""

JobTeller = Callable[[Call, Job], Awaitable[Reply | CallToolResult]]
"""What a tool answers once the job has succeeded that it started."""

ErrorRenderer = Callable[[Exception], CallToolResult]
Substitute = Callable[[Services], Awaitable[Reply]]
"""Answers in a tool's place while the database is away and nobody knows who calls: with nothing of any tenant."""


@dataclass(frozen=True, slots=True)
class LongWork:
    """The jobs that a tool starts, and how it tells what came of one.

    `mode`: of a kind that several tools start, those whose arguments have this mode.
    """

    kind: str
    tell: JobTeller
    mode: str | None = None

    def starts(self, job: Job) -> bool:
        """Whether a job is such a one, whoever started it."""
        return job.kind == self.kind and self.mode in (None, job.arguments.get("mode"))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool of the catalogue.

    Its scope follows from whether it writes, unless it `needs` another: as the route does that does the same.

    `render_error` is how the dialect of its toolset tells errors; `substitute` answers where a tool tells that the
    database is away by a result that is no error. `dialects`: how toolsets that it stands in as a guest tell it, each
    where none of its own toolsets is chosen beside. `ask` comes before the handler, at revisions where clients can be
    asked back. `work`: of a tool that may start a job. `listed` is how the tool is listed where that does not follow
    from its types. `view`: the address of the page that shows what it answers, for clients that show pages.
    """

    name: str
    title: str
    description: str
    toolsets: frozenset[str]
    arguments: type[msgspec.Struct]
    result: type[msgspec.Struct]
    handler: Handler
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
    listed: Tool | None = field(default=None, compare=False)

    def dialect_for(self, chosen: frozenset[str]) -> "ToolSpec":
        """The tool as these toolsets tell it: its own shapes wherever one of its own toolsets is among them."""
        guests = frozenset[str]().union(*(dialect.toolsets for dialect in self.dialects))
        if (self.toolsets - guests) & chosen:
            return self
        return next((dialect for dialect in self.dialects if dialect.toolsets & chosen), self)

    @property
    def scope(self) -> Scope:
        """The scope that a credential needs for it."""
        return self.needs or (Scope.MEMORY_READ if self.read_only else Scope.MEMORY_WRITE)


@dataclass(frozen=True, slots=True)
class Selection:
    """What one request is offered: toolsets by name, and whether only tools that read."""

    toolsets: frozenset[str]
    read_only: bool = False

    def chooses(self, tool: ToolSpec) -> bool:
        """Whether the request asks for the tool, whoever sends it."""
        return bool(tool.toolsets & self.toolsets) and (tool.read_only or not self.read_only)

    def offers(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is listed for this caller, and may be called: one filter decides both."""
        return self.reaches(tool, caller) and caller.may(tool.scope)

    def reaches(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is offered to this caller, or would be if their scopes allowed it."""
        return self.chooses(tool) and bool(tool.toolsets & self.chosen(caller))

    def chosen(self, caller: Caller) -> frozenset[str]:
        """The toolsets that were asked for and that the credential reaches."""
        return self.toolsets if caller.toolsets is None else self.toolsets & caller.toolsets
