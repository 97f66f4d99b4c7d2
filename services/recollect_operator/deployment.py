"""/operator/v1/cells: the PostgreSQL clusters of the deployment."""

from litestar import Controller, get
from litestar.datastructures import State

from recollect_http.pages import Page
from recollect_http.problems import RESPONSES
from recollect_operator import operations
from recollect_operator.cells import OperatorCells
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.shapes import CellBody


class CellController(Controller):
    """The cells of the deployment."""

    path = "/cells"
    tags = ("cells",)

    @get("/", responses=RESPONSES, response_description="All cells of the deployment.", summary="List cells")
    async def list_cells(self, request: OperatorRequest, state: State) -> Page[CellBody]:
        """List all cells on one page, the home cell first.

        For each cell: how much it holds, whether it answers, and which migrations it lacks.
        """
        cells: OperatorCells = state.cells
        return Page(await operations.list_cells(cells, request.user), None)
