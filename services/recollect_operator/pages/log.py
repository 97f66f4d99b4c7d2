"""The log of operators: who did what, on what, from where. Nobody can change it."""

from typing import Annotated

from litestar import Controller, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.accounts.operator_log import service as operator_log
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME
from recollect_http.pages import Cursor, integer, position_of
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.pages.rendering import here, render

PAGE = 50
"""Entries of a page."""

Subject = Annotated[str, QueryParameter(max_length=300)]
OfCell = Annotated[str, QueryParameter(max_length=32)]


class LogPages(Controller):
    """What operators did."""

    path = "/log"

    @get("/")
    async def show(
        self,
        request: OperatorRequest,
        state: State,
        operator: NamedDependency[Operator],
        subject: Subject = "",
        cell: OfCell = HOME,
        cursor: Cursor = None,
    ) -> Response[str]:
        """One page of the log of a cell, newest first."""
        before = position_of(cursor, integer)
        found = await operator_log.list_entries(
            operator, subject=subject.strip() or None, before=before, limit=PAGE + 1
        )
        shown = found[:PAGE]
        return render(
            request,
            "log/list.html",
            entries_of_log=shown,
            subject=subject,
            cell=cell or HOME,
            cells=[(name, name) for name in state.cells.names],
            first=here(request, cursor=None) if cursor else None,
            next=here(request, cursor=shown[-1].id) if len(found) > PAGE else None,
        )
