"""Cells with their loads, and the moves of tenants between them."""

from litestar import Controller, Response, get
from litestar.datastructures import State

from recollect.moves import service as moves
from recollect.moves.model import Step
from recollect_operator import operations
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.pages.rendering import render

STEPS = {
    Step.PREPARE: "prepares: writes go on",
    Step.COPY: "copies rows: writes go on",
    Step.HOLD: "writes are refused",
    Step.CHECK: "compares the rows: writes are refused",
    Step.SWITCH: "switches: neither cell serves the tenant for a moment",
    Step.CLEAN: "removes what is left: the target serves the tenant",
    Step.UNDO: "is being undone: the source serves the tenant",
}
"""What each step means for the tenant."""

UNDOABLE = (Step.PREPARE, Step.COPY, Step.HOLD, Step.CHECK, Step.UNDO)


class CellPages(Controller):
    """The PostgreSQL clusters of the deployment."""

    path = "/cells"

    @get("/")
    async def show(self, request: OperatorRequest, state: State) -> Response[str]:
        """All cells, and the moves that are under way or were interrupted."""
        cells = await operations.list_cells(state.cells, request.user)
        async with state.cells.home.session(request.user) as home:
            found = await moves.list_moves_from(home)
        return render(request, "cells/show.html", cells=cells, moves=found, steps=STEPS, undoable=UNDOABLE)
