"""Confirmation: what removes much at once asks a person first, where the client can ask one.

The question goes out with the number that was told. A yes holds for no more than that: where there is more by then, the
question is asked anew. Clients that cannot ask are served as they always were.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from msgspec import structs

from recollect.errors import ErrorCode, Forbidden
from recollect.graph.graphs import service as graphs
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.rounds import Round
from recollect_gateway.mcp_endpoint.tool import Asker
from recollect_gateway.mcp_endpoint.toolsets.admin import compaction, history
from recollect_gateway.mcp_endpoint.toolsets.agent import changes
from recollect_gateway.mcp_endpoint.toolsets.lineage.graphs import DeleteGraph
from recollect_gateway.mcp_endpoint.toolsets.memory.entities import DeleteEntities
from recollect_gateway.mcp_endpoint.toolsets.organize.curation import MergeEntities

UNASKED = 100
"""Nodes, or entries of other kinds, that a call removes or changes back without a question, at most."""

QUESTION = "confirm"

Size = Callable[[Call, Any], Awaitable[int]]
"""How much a call would take, at most."""


def confirmed(what: str, size: Size, *, unasked: int = UNASKED) -> Asker:
    """What asks for a yes to more than so many. `what` completes "This …", with {size} and {graph} filled in.

    It raises Forbidden for a no.
    """

    async def ask(call: Call, arguments: Any, round_: Round) -> InputRequiredResult | None:
        if not _can_ask(round_):
            return None
        count = await size(call, arguments)
        if count <= unasked:
            return None
        if QUESTION in round_.answers and round_.state is not None and count <= int(round_.state):
            _require_yes(round_.answers[QUESTION])
            return None
        told = what.format(size=f"{count:,}", graph=call.graph_name(arguments.graph))
        asked = {QUESTION: _question(f"This {told}. Go on?")}
        return InputRequiredResult(input_requests=dict(asked), request_state=str(count))

    return ask


def _can_ask(round_: Round) -> bool:
    """Whether the client shows forms to somebody; one that names no kind of elicitation does."""
    elicits = round_.capabilities.elicitation
    return elicits is not None and (elicits.form is not None or elicits.url is None)


def _question(message: str) -> ElicitRequest:
    yes = {"type": "boolean", "title": "Go on", "description": "Whether to do it"}
    schema = {"type": "object", "properties": {QUESTION: yes}, "required": [QUESTION]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _require_yes(answer: Any) -> None:
    agreed = isinstance(answer, ElicitResult) and answer.action == "accept" and (answer.content or {}).get(QUESTION)
    if agreed is not True:
        raise Forbidden("Nothing was changed: it was not confirmed", code=ErrorCode.NOT_CONFIRMED)


async def _forgotten(_: Call, arguments: changes.Forget) -> int:
    """What is only outdated is still there."""
    return len(arguments.ids) + len(arguments.names) if arguments.mode == "delete" else 0


async def _deleted(_: Call, arguments: DeleteEntities) -> int:
    return len(arguments.entity_names)


async def _merged(_: Call, arguments: MergeEntities) -> int:
    return len(arguments.entity_names)


async def _in_graph(call: Call, arguments: DeleteGraph) -> int:
    async with call.transaction() as tx:
        head = await graphs.head_of(await graphs.view(tx, arguments.graph))
    return head.entities + head.facts


async def _freed(call: Call, arguments: compaction.Compact) -> int:
    if arguments.dry_run:
        return 0
    reply = await compaction.compact(call, structs.replace(arguments, dry_run=True))
    assert isinstance(reply.structured, compaction.Compacted)
    return sum(structs.astuple(reply.structured.freed))


async def _undone(call: Call, arguments: history.UndoChanges) -> int:
    if arguments.dry_run:
        return 0
    reply = await history.undo_changes(call, structs.replace(arguments, dry_run=True))
    plan = reply.structured
    assert isinstance(plan, history.Undone)
    nodes, said = plan.nodes_restored + plan.nodes_removed, plan.observations_restored + plan.observations_removed
    return nodes + said + plan.relations_restored + plan.relations_removed


FORGET = confirmed("deletes up to {size} memories and nodes of the graph {graph}", _forgotten)
DELETE_ENTITIES = confirmed(
    "deletes up to {size} entities of the graph {graph}, with all that is said of them", _deleted
)
MERGE_ENTITIES = confirmed("makes one of {size} entities of the graph {graph}", _merged)
COMPACT = confirmed("removes {size} entries of the past of the graph {graph} for good", _freed)
UNDO_CHANGES = confirmed("undoes changes of {size} nodes, observations and relations of the graph {graph}", _undone)
DELETE_GRAPH = confirmed("deletes the graph {graph} for good, with {size} nodes and its history", _in_graph, unasked=0)
