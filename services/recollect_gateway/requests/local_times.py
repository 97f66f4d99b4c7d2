"""Finds the time zone for days, and times without an offset, in arguments: the call's, or else the graph's."""

from datetime import UTC, tzinfo
from typing import Any

from msgspec import Struct

from recollect.errors import InvalidInput
from recollect.graph.graphs.model import graph_name
from recollect.times import MAX_ZONE, require_zone, zone_of
from recollect_gateway.calls import Call
from recollect_gateway.requests.lenient_parsing import has_local_times

FIELD = "time_zone"
"""The argument that names the zone of a call."""


async def zone_of_call(call: Call, graph: Any, type_: type[Struct], arguments: Any) -> tzinfo:
    """The zone of the days, and the times without an offset, in arguments; UTC if there are none.

    Raises InvalidInput for a name that no time zone has.
    """
    if not isinstance(arguments, dict) or not has_local_times(type_, arguments):
        return UTC
    named = arguments.get(FIELD) if FIELD in type_.__struct_fields__ else None
    if named and isinstance(named, str) and len(named) <= MAX_ZONE:
        return zone_of(require_zone(named, FIELD))
    return zone_of(await call.time_zone(_graph_name(graph)))


def _graph_name(graph: Any) -> str | None:
    """The name of a graph; None for any other value, which the parser refuses later."""
    if not isinstance(graph, str) or not graph:
        return None
    try:
        return graph_name(graph)
    except InvalidInput:
        return None
