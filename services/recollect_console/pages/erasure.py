"""Erasure of a person: a name, what would go, the name again, and the receipt."""

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency

from recollect.errors import ErrorKind, InvalidInput, RecollectError
from recollect.retention.erasure import service as erasure
from recollect.retention.erasure.model import Receipt
from recollect_console.access import ADMIN
from recollect_console.pages.jobs import file_headers
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.erasure import ReceiptBody, receipt_body

MAX_NAME, MAX_SUBJECT = 512, 256
"""Characters of an entity's name, and of a subject."""

REFUSALS = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.TOO_LARGE})
"""Why a person cannot be erased, as the form says it."""


class ErasurePages(Controller):
    """Erase what a graph knows of a person, for owners and admins."""

    path = "/erasure"

    @get("/", opt=ADMIN)
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The form for the name."""
        return await _form(visit)

    @post("/check", opt=ADMIN, status_code=200)
    async def check(self, visit: NamedDependency[Visit]) -> Response[str]:
        """What would go, and what would stay: it is done, and rolled back."""
        try:
            receipt = await _erase(visit, dry_run=True)
        except RecollectError as error:
            return await _refused(visit, error)
        return await _confirm(visit, receipt)

    @post("/", opt=ADMIN, status_code=200)
    async def erase(self, visit: NamedDependency[Visit]) -> Response[str]:
        """Erase the person, once their name is typed again."""
        try:
            if visit.value("confirmed") != _typed(visit):
                fault = "What you typed differs. Nothing is erased."
                return await _confirm(visit, await _erase(visit, dry_run=True), status=400, fault=fault)
            receipt = await _erase(visit, dry_run=False)
        except RecollectError as error:
            return await _refused(visit, error)
        async with visit.reading_tenant():
            body = receipt_body(receipt, dry_run=False)
        return render(visit, "erasure/receipt.html", receipt=body, encoded=msgspec.json.encode(body).decode())

    @post("/receipt", opt=ADMIN, status_code=200)
    async def download(self, visit: NamedDependency[Visit]) -> Response[bytes]:
        """The receipt that the page shows, as a file. Nothing of it is kept here: it has the person's names."""
        try:
            body = msgspec.json.decode(visit.value("receipt"), type=ReceiptBody)
        except msgspec.DecodeError:
            raise InvalidInput("This is no receipt", path="receipt") from None
        content = msgspec.json.format(msgspec.json.encode(body), indent=2)
        headers = file_headers(f"erasure-{visit.caller.tenant}-{body.revision}.json")
        return Response(content, media_type="application/json", headers=headers)


async def _erase(visit: Visit, *, dry_run: bool) -> Receipt:
    """Erase, or try to. Raises InvalidInput, NotFound, TooLarge."""
    name, subject = visit.value("name"), visit.value("created_by")
    if len(name) > MAX_NAME or len(subject) > MAX_SUBJECT:
        raise InvalidInput(f"A name has up to {MAX_NAME} characters, a subject up to {MAX_SUBJECT}", path="name")
    async with visit.db.writing(visit.caller, visit.graph, commit=not dry_run) as tx:
        return await erasure.erase_person(tx, visit.graph, name or None, created_by=subject or None, dry_run=dry_run)


def _typed(visit: Visit) -> str:
    """What has to be typed again: the name, or the subject where there is no name."""
    return visit.value("name") or visit.value("created_by")


async def _form(visit: Visit, *, status: int = 200, fault: str = "") -> Response[str]:
    async with visit.reading_tenant():
        pass
    entered = {"name": visit.value("name"), "created_by": visit.value("created_by")}
    return render(visit, "erasure/form.html", status=status, fault=fault, entered=entered)


async def _confirm(visit: Visit, receipt: Receipt, *, status: int = 200, fault: str = "") -> Response[str]:
    async with visit.reading_tenant():
        pass
    return render(
        visit,
        "erasure/confirm.html",
        status=status,
        fault=fault,
        receipt=receipt_body(receipt, dry_run=True),
        typed=_typed(visit),
        fields={"name": visit.value("name"), "created_by": visit.value("created_by")},
    )


async def _refused(visit: Visit, error: RecollectError) -> Response[str]:
    """The form with what was entered."""
    if error.kind not in REFUSALS:
        raise error
    return await _form(visit, status=400, fault=error.message)
