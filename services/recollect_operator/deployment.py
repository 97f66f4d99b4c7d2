"""/operator/v1/cells: the PostgreSQL clusters of the deployment."""

from typing import Any

from litestar import Controller, Request, get
from litestar.datastructures import State

from recollect.cells.directory import service as directory
from recollect.errors import Unavailable
from recollect.postgres.operator_sessions import Operator
from recollect_http.pages import Page
from recollect_http.problems import RESPONSES
from recollect_operator.cells import OperatorCells
from recollect_operator.operator_identity import OperatorIdentity
from recollect_operator.shapes import CellBody

AnyRequest = Request[OperatorIdentity, Any, State]


class CellController(Controller):
    """The cells of the deployment."""

    path = "/cells"
    tags = ("cells",)

    @get("/", responses=RESPONSES, response_description="All cells of the deployment.", summary="List cells")
    async def list_cells(self, request: AnyRequest, state: State) -> Page[CellBody]:
        """List all cells on one page, the home cell first.

        For each cell: how much it holds, whether it answers, and which migrations it lacks.
        """
        cells: OperatorCells = state.cells
        return Page([await _describe(cells, name, request.user) for name in cells.names], None)


async def _describe(cells: OperatorCells, name: str, identity: OperatorIdentity) -> CellBody:
    try:
        async with cells.at(name).session(identity) as operator:
            return await _measure(operator)
    except Unavailable:
        return CellBody(name, False, None, None, [])


async def _measure(operator: Operator) -> CellBody:
    missing = await directory.missing_migrations(operator)
    size = await directory.measure_cell(operator)
    return CellBody(operator.cell, True, size.tenants, size.bytes, missing)
