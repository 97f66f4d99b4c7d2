"""The tool `recall`."""

from dataclasses import replace
from datetime import datetime, tzinfo
from math import ceil

from recollect.retrieval.recall.model import MemoryAttributes, Recalled
from recollect.retrieval.recall.ranking import Hit
from recollect.times import in_zone, with_offset, zone_of
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line, under_its_line
from recollect_gateway.operations.recall import (
    DEFAULT_LIMIT,
    DEFAULT_TOKENS,
    RecallBody,
    RecalledMemories,
    note_of,
    recall,
    recalled_body,
)
from recollect_http.requests.argument_types import GraphChoice


class Recall(RecallBody, frozen=True):
    """Arguments of `recall`."""

    graph: GraphChoice | None = None


async def recall_memories(call: Call, arguments: Recall) -> Reply | PagedReply:
    """Find memories by words and meaning. A call that asks for n times the defaults may fill n pages."""
    recalled = await recall(call, arguments.graph, arguments)
    zone = None if arguments.time_zone is None else zone_of(arguments.time_zone)

    def render(count: int) -> Reply:
        more = recalled.more or count < len(recalled.hits)
        page = replace(recalled, hits=recalled.hits[:count], more=more)
        return Reply(recalled_body(page, explain=arguments.explain), _recalled_text(page, arguments.explain, zone))

    pages = ceil(max(arguments.limit_or_default / DEFAULT_LIMIT, arguments.token_budget / DEFAULT_TOKENS))
    return PagedReply(len(recalled.hits), render, pages=pages)


RECALL = ToolSpec(
    name="recall",
    description="Find memories by words and by meaning. Call it before you answer from memory. Filters apply to a "
    "memory's own properties, or else its entity's; any of several values counts (all_tags: all of them), in any "
    "case. A filter alone lists the newest, as do queries like everything.",
    toolsets=frozenset({"agent"}),
    result=RecalledMemories,
    handler=recall_memories,
    read_only=True,
)


def _recalled_text(recalled: Recalled, explain: bool, zone: tzinfo | None) -> str:
    lines = [
        _line(hit, explain, hit.key in recalled.parts, recalled.attributes[hit.memory_id], zone)
        for hit in recalled.hits
    ] or [" ".join(filter(None, ("Nothing found.", note_of(recalled.holdings))))]
    if recalled.corrected:
        lines.insert(0, f"Searched for: {'; '.join(map(in_one_line, recalled.corrected))}")
    if any(hit.key in recalled.parts for hit in recalled.hits):
        lines.append("Of a long memory only the best part is shown: raise token_budget to get it whole.")
    if recalled.next_cursor:
        lines.append(f"More follow: give cursor {recalled.next_cursor}")
    elif recalled.more:
        lines.append("More was found: raise limit or token_budget, or narrow the question.")
    if recalled.waiting and not recalled.positions:
        waiting = "1 passage is" if recalled.waiting == 1 else f"{recalled.waiting} passages are"
        lines.append(f"{waiting} not embedded yet: found by words only.")
    return "\n".join(lines)


def _day(at: datetime, said_offset: int | None, zone: tzinfo | None) -> str:
    """Format the day of a time with its offset from UTC: by the clock of the speaker, or else in the call's zone."""
    local = with_offset(at, said_offset) if said_offset is not None or zone is None else in_zone(at, zone)
    clock = f" UTC{local.isoformat(timespec='minutes')[16:]}" if local.utcoffset() else ""
    return f"{local:%Y-%m-%d}{clock}"


def _line(hit: Hit, explain: bool, is_part: bool, attributes: MemoryAttributes, zone: tzinfo | None) -> str:
    """Format a memory as one line. Its version is shown if it is not the first, and none of several in conflict."""
    prefix = f"{hit.name}: " if hit.name and not hit.text.startswith(hit.name) else ""
    version = attributes.version
    notes = [_day(hit.at, attributes.said_offset, zone)] if hit.at else []
    notes += ["part"] if is_part else []
    notes += [f"version {version}"] if version and version > 1 and hit.version_id is None else []
    notes += ["outdated"] if hit.outdated else []
    notes += [f"one of {len(hit.conflicts) + 1} versions in conflict"] if hit.conflicts else []
    suffix = f" ({', '.join(notes)})" if notes else ""
    score = f" {hit.score:.2f}" if explain else ""
    return f"- {under_its_line(prefix + hit.text)}{suffix} [{hit.memory_id}{score}]"
