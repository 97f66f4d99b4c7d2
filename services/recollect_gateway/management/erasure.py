"""Erase a person's data from a graph, or a graph: at once, for good, with a receipt."""

from typing import Annotated, Any

from litestar import Controller, Request, delete, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from recollect.caller import Caller
from recollect.platform.db import Database
from recollect.retention.erasure import service as erasure
from recollect.retention.erasure.model import Receipt
from recollect_gateway.errors import ACT_RESPONSES, CHANGE_RESPONSES
from recollect_gateway.guards import BY_SCOPE, mirrors, requires_admin
from recollect_gateway.idempotency import KEEPS_NO_ANSWER
from recollect_gateway.management.graphs import configuration
from recollect_gateway.preconditions import unchanged
from recollect_gateway.validation import valid_body

AnyRequest = Request[Caller, Any, State]
DryRun = Annotated[bool, QueryParameter(description="Only report what would be erased")]


class ErasePerson(Struct, frozen=True, forbid_unknown_fields=True):
    """What to erase: an entity by any of its names, everything that a subject wrote, or both."""

    name: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    created_by: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    dry_run: bool = False


class ReceiptBody(Struct, frozen=True):
    """What was erased: the number of rows by table. `names`: all names of the person. `kept`: rows that still hold one.

    `remains`: where erased content still exists out of reach of SQL, and until when.
    """

    dry_run: bool
    revision: int | None
    names: list[str]
    erased: dict[str, int]
    kept: dict[str, int]
    remains: dict[str, str]


class ErasureController(Controller):
    """Erase people from graphs, and graphs."""

    path = "/graphs/{name:str}"
    tags = ("erasure",)

    @post(
        "/erase",
        responses=ACT_RESPONSES,
        summary="Erase a person from a graph",
        opt=BY_SCOPE | KEEPS_NO_ANSWER,
        status_code=200,
        guards=[requires_admin],
        before_request=valid_body(ErasePerson),
    )
    async def erase_person(
        self, request: AnyRequest, db: NamedDependency[Database], name: FromPath[str], data: JSONBody[ErasePerson]
    ) -> ReceiptBody:
        """Erase an entity with its history, everything that names it, and everything that a subject wrote.

        All of it happens in one transaction. Returns a receipt, whose numbers are counted by queries after the
        deletion. The log of changes keeps ids and who wrote.
        """
        async with db.writing(request.user, name, commit=not data.dry_run) as tx:
            receipt = await erasure.erase_person(tx, name, data.name, created_by=data.created_by, dry_run=data.dry_run)
        return _body(receipt, dry_run=data.dry_run)

    @delete(
        "/",
        responses=CHANGE_RESPONSES,
        summary="Erase a graph",
        opt=mirrors("delete_graph"),
        status_code=200,
        guards=[requires_admin],
    )
    async def erase_graph(
        self, request: AnyRequest, db: NamedDependency[Database], name: FromPath[str], dry_run: DryRun = False
    ) -> ReceiptBody:
        """Delete a graph with its history, its log and its jobs. This cannot be undone.

        The response is 409 `graph_in_use` while the graph is the default graph of a key.
        """
        check = unchanged(request, configuration)
        async with db.transaction(request.user) if dry_run else db.writing(request.user, name) as tx:
            return _body(await erasure.erase_graph(tx, name, dry_run=dry_run, check=check), dry_run=dry_run)


def _body(receipt: Receipt, *, dry_run: bool) -> ReceiptBody:
    revision = None if dry_run else receipt.revision  # The revision of a dry run was rolled back.
    return ReceiptBody(dry_run, revision, list(receipt.names), receipt.erased, receipt.kept, receipt.remains)
