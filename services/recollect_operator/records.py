"""/operator/v1: erasures under way, receipts of erasures, and the log of operators."""

from typing import Annotated
from uuid import UUID

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from recollect.accounts.deletions import service as deletions
from recollect.accounts.deletions.model import StepOutcome
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.tenants import service as tenants
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME
from recollect_http.pages import Cursor, Limit, Page, integer, page_of, position_of
from recollect_http.problems import RESPONSES
from recollect_operator.shapes import (
    EntryBody,
    ErasureBody,
    ErasureReceiptBody,
    StatisticsBody,
    entry_body,
    receipt_body,
)

TenantInErasure = Annotated[UUID, PathParameter(description="Id of the tenant to erase")]
ReceiptInPath = Annotated[UUID, PathParameter(description="Id of the receipt")]
OfSlug = Annotated[str | None, QueryParameter(max_length=63, description="Only of tenants that had this slug")]
OfCell = Annotated[str, QueryParameter(max_length=32, description="Name of the cell that is queried")]
OfSubject = Annotated[
    str | None, QueryParameter(max_length=300, description="Only acts on this subject, such as `tenant:acme`")
]


class ErasureReceiptController(Controller):
    """Erasures of tenants whose grace is over. Workers do them by themselves; an operator who waits may help."""

    path = "/"
    tags = ("erasures",)

    @post(
        "/erasures/{tenant_id:uuid}",
        responses=RESPONSES,
        response_description="The state of the erasure and, at its end, the receipt.",
        summary="Continue an erasure",
        status_code=200,
    )
    async def continue_erasure(self, operator: NamedDependency[Operator], tenant_id: TenantInErasure) -> ErasureBody:
        """Do one step of an erasure, which takes a second or two. Repeat the request until the state is `erased`.

        The response is 409 `tenant_not_deleted` if the tenant's grace period is not over, or there is no such tenant.
        """
        outcome = await deletions.erase_step(operator, tenant_id)
        if outcome in (StepOutcome.MORE, StepOutcome.BUSY):
            return ErasureBody("more" if outcome is StepOutcome.MORE else "busy", None)
        return ErasureBody("erased", receipt_body(await deletions.finish_erasure(operator, tenant_id)))

    @post(
        "/statistics",
        responses=RESPONSES,
        response_description="The tables whose statistics were not recomputed.",
        summary="Recompute the statistics",
        status_code=200,
    )
    async def renew_statistics(self, operator: NamedDependency[Operator], cell: OfCell = HOME) -> StatisticsBody:
        """Recompute the planner's statistics, which contain pieces of erased content until then.

        Returns the tables that were left out because others are analysing or vacuuming them.
        """
        return StatisticsBody(await tenants.forget_statistics(operator))

    @get("/receipts", responses=RESPONSES, response_description="A page of receipts.", summary="List receipts")
    async def list_receipts(
        self,
        operator: NamedDependency[Operator],
        slug: OfSlug = None,
        cell: OfCell = HOME,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[ErasureReceiptBody]:
        """List the receipts of erased tenants, newest first."""
        before = position_of(cursor, integer)
        found = await deletions.list_receipts(operator, slug=slug, before=before, limit=limit + 1)
        return page_of(found, limit, receipt_body, lambda receipt: str(receipt.number))

    @get(
        "/receipts/{receipt_id:uuid}", responses=RESPONSES, response_description="The receipt.", summary="Get a receipt"
    )
    async def get_receipt(
        self, operator: NamedDependency[Operator], receipt_id: ReceiptInPath, cell: OfCell = HOME
    ) -> ErasureReceiptBody:
        """Return the receipt of an erased tenant."""
        return receipt_body(await deletions.get_receipt(operator, receipt_id))

    @get(
        "/log",
        responses=RESPONSES,
        response_description="A page of the operators' log.",
        summary="List operator actions",
    )
    async def list_log_entries(
        self,
        operator: NamedDependency[Operator],
        subject: OfSubject = None,
        cell: OfCell = HOME,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[EntryBody]:
        """List what operators did, newest first. Nobody can change this log."""
        before = position_of(cursor, integer)
        found = await operator_log.list_entries(operator, subject=subject, before=before, limit=limit + 1)
        return page_of(found, limit, entry_body, lambda entry: str(entry.id))
