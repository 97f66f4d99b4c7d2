"""Confirmation: a call that removes much at once asks a person first, where the client can ask one.

The request's state holds the number that the question named. A yes holds for no more than that: if the call would
remove more by then, the question is asked anew. For clients that cannot ask, the call is done without a question.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from recollect.errors import ErrorCode, Forbidden
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.rounds import ElicitationRound
from recollect_gateway.mcp_endpoint.tool import Asker

MAX_UNCONFIRMED = 100
"""The maximum number of nodes, or entries of other kinds, that a call removes or undoes without asking."""

QUESTION = "confirm"

Counter = Callable[[Call, Any], Awaitable[int]]
"""A function that counts the nodes or entries that a call would remove or undo; the call may find fewer."""


def confirm(effect: str, counter: Counter, *, max_unconfirmed: int = MAX_UNCONFIRMED) -> Asker:
    """Make an `Asker` that has a person confirm a call that removes more than `max_unconfirmed` nodes or entries.

    The asker raises Forbidden where the person refuses.
    `effect` completes the sentence "This …", with {size} and {graph} filled in.
    """

    async def ask(call: Call, arguments: Any, round_: ElicitationRound) -> InputRequiredResult | None:
        if not _can_ask(round_):
            return None
        count = await counter(call, arguments)
        if count <= max_unconfirmed:
            return None
        if QUESTION in round_.answers and round_.state is not None and count <= int(round_.state):
            _require_yes(round_.answers[QUESTION])
            return None
        sentence = effect.format(size=f"{count:,}", graph=call.graph_name(arguments.graph))
        question = _question(f"This {sentence}. Continue?")
        return InputRequiredResult(input_requests={QUESTION: question}, request_state=str(count))

    return ask


def _can_ask(round_: ElicitationRound) -> bool:
    """Whether the client can show a form to a person; a client that names no kind of elicitation can."""
    elicitation = round_.capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _question(message: str) -> ElicitRequest:
    yes = {"type": "boolean", "title": "Continue", "description": "Whether to do it"}
    schema = {"type": "object", "properties": {QUESTION: yes}, "required": [QUESTION]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _require_yes(answer: Any) -> None:
    is_yes = isinstance(answer, ElicitResult) and answer.action == "accept" and (answer.content or {}).get(QUESTION)
    if is_yes is not True:
        raise Forbidden("Nothing was changed, because the call was not confirmed", code=ErrorCode.NOT_CONFIRMED)
