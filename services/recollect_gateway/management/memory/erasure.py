"""Erase a person's data from a graph, or a graph: at once, for good, with a receipt."""

from typing import Annotated

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from recollect.postgres.tenant_database import TenantDatabase
from recollect.retention.erasure import service as erasure
from recollect.retention.erasure.model import Receipt
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, mirrors, requires_admin
from recollect_gateway.management.memory.graphs import configuration
from recollect_gateway.requests.idempotency import KEEPS_NO_ANSWER
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import SUBJECT, GraphInPath
from recollect_http.openapi.routes import delete, post
from recollect_http.preconditions import unchanged
from recollect_http.problems import CHANGE_RESPONSES

PersonEntity = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=512,
        description="Any name of the entity to erase with everything that contains one of its names; null: no entity",
        examples=["Ada"],
    ),
]
Author = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description=f"Subject whose writings to erase, {SUBJECT}; null: of no subject",
    ),
]
DryRun = Annotated[bool, QueryParameter(description="Only report what would be erased")]


class ErasePerson(Struct, frozen=True, forbid_unknown_fields=True):
    """What to erase: an entity by any of its names, everything that a subject wrote, or both."""

    name: PersonEntity | None = None
    created_by: Author | None = None
    dry_run: Annotated[bool, Meta(description="Whether to report only what would be erased")] = False


class ReceiptBody(Struct, frozen=True):
    """The receipt of an erasure."""

    dry_run: Annotated[bool, Meta(description="Whether nothing was erased, and the numbers say what would be")]
    revision: Annotated[
        int | None, Meta(description="Revision of the graph that the erasure wrote; null: none, as in a dry run")
    ]
    names: Annotated[list[str], Meta(description="Names of the person that were searched for")]
    erased: Annotated[dict[str, int], Meta(description="Numbers of erased rows by table")]
    kept: Annotated[
        dict[str, int], Meta(description="Numbers of rows by table that still contain one of the names, and why")
    ]
    remains: Annotated[
        dict[str, str],
        Meta(description="Places that no query reaches and that still contain erased data, each with until when"),
    ]


class ErasureController(Controller):
    """Erase people from graphs, and graphs."""

    path = "/graphs/{name:str}"
    tags = ("erasure",)

    @post(
        "/erase",
        response_description="The receipt of the erasure or, of a dry run, what it would erase.",
        summary="Erase a person from a graph",
        opt=BY_SCOPE | KEEPS_NO_ANSWER,
        status_code=200,
        guards=[requires_admin],
        before_request=valid_body(ErasePerson),
    )
    async def erase_person(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        data: JSONBody[ErasePerson],
    ) -> ReceiptBody:
        """Erase an entity with its history, everything that names it, and everything that a subject wrote.

        All of it happens in one transaction. Returns a receipt, whose numbers are counted by queries after the
        deletion. The log of changes keeps ids and who wrote.
        """
        async with db.writing(request.user, name, commit=not data.dry_run) as tx:
            receipt = await erasure.erase_person(tx, name, data.name, created_by=data.created_by, dry_run=data.dry_run)
        return receipt_body(receipt, dry_run=data.dry_run)

    @delete(
        "/",
        responses=CHANGE_RESPONSES,
        response_description="The receipt of the erasure or, of a dry run, what it would erase.",
        summary="Erase a graph",
        opt=mirrors("delete_graph"),
        status_code=200,
        guards=[requires_admin],
    )
    async def erase_graph(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], name: GraphInPath, dry_run: DryRun = False
    ) -> ReceiptBody:
        """Delete a graph with its history, its log and its jobs. This cannot be undone.

        The response is 409 `graph_in_use` while the graph is the default graph of a key.
        """
        check = unchanged(request, configuration)
        async with db.transaction(request.user) if dry_run else db.writing(request.user, name) as tx:
            return receipt_body(await erasure.erase_graph(tx, name, dry_run=dry_run, check=check), dry_run=dry_run)


def receipt_body(receipt: Receipt, *, dry_run: bool) -> ReceiptBody:
    """A receipt as routes and pages answer it."""
    revision = None if dry_run else receipt.revision  # The revision of a dry run was rolled back.
    return ReceiptBody(dry_run, revision, list(receipt.names), receipt.erased, receipt.kept, receipt.remains)
