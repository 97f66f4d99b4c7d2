"""Signing in to the pages of operators by a key, and out."""

from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.params import QueryParameter
from litestar.response import Redirect

from recollect.accounts.identity.model import hash_secret, kind_of
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_keys.model import KIND, SESSION_LIFETIME, SUBJECT, IssuedOperatorSession
from recollect.errors import Unauthenticated
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import own_cookie, random_cookie
from recollect_http.web.rendering import go_to
from recollect_operator.cells import OperatorCells
from recollect_operator.identity import KeyIdentities
from recollect_operator.operator_identity import OperatorIdentity
from recollect_operator.pages.access import COOKIE, field
from recollect_operator.pages.navigation import ROOT
from recollect_operator.pages.rendering import MAX_NEXT, SIGN_IN, address, render_alone

Next = Annotated[str, QueryParameter(max_length=MAX_NEXT)]
NOT_VALID = "This key is not valid. `recollect operator keys create` makes one."


class SignInPages(Controller):
    """The way to the pages."""

    path = ROOT

    @get("/sign-in")
    async def ask(self, request: AnyRequest, next: Next = "") -> Response[str]:
        """The form."""
        return render_alone(request, "sign_in.html", next=safe_page(next), fault="")

    @post("/sign-in")
    async def sign_in(self, request: AnyRequest) -> Response[str] | Redirect:
        """Begin a session of an hour for the holder of a valid key; one that the browser still has ends.

        What was typed is not shown again.
        """
        page = safe_page(field(request, "next"))
        try:
            issued = await _begin_session(request, field(request, "key"))
        except Unauthenticated:
            return render_alone(request, "sign_in.html", status=401, next=page, fault=NOT_VALID)
        await _end_session(request)
        answer = go_to(page)
        seconds = int(SESSION_LIFETIME.total_seconds())
        answer.set_cookie(own_cookie(request, COOKIE, issued.secret, max_age=seconds, same_site="strict"))
        return answer

    @post("/sign-out")
    async def sign_out(self, request: AnyRequest) -> Redirect:
        """End the browser's session, if it has one."""
        await _end_session(request)
        answer = go_to(SIGN_IN)
        answer.set_cookie(own_cookie(request, COOKIE, "", max_age=0, same_site="strict"))
        return answer


async def _begin_session(request: AnyRequest, secret: str) -> IssuedOperatorSession:
    """A session for the holder of this key. Raises Unauthenticated, also for a secret that can be no operator's key."""
    state, site = request.app.state, site_of_client(request)
    identities, cells = state.identify, state.cells
    assert isinstance(identities, KeyIdentities)
    assert isinstance(cells, OperatorCells)
    if kind_of(secret) != KIND:
        raise Unauthenticated(operator_keys.REFUSAL)
    key = await identities.find_key(secret, site)
    async with cells.home.session(OperatorIdentity(f"{SUBJECT}{key.id}", site)) as operator:
        issued = await operator_keys.begin_session(operator, key.id, pepper=state.pepper)
    # So it holds even if others at its address guess keys.
    identities.failed_keys.note_valid(hash_secret(issued.secret, state.pepper))
    return issued


async def _end_session(request: AnyRequest) -> None:
    secret, state = random_cookie(request, COOKIE), request.app.state
    if secret is not None:
        async with state.cells.home.session() as session:
            await operator_keys.end_session(session, secret, pepper=state.pepper)


def safe_page(page: str) -> str:
    """The address to go on to: the one given if it is one of these pages, otherwise the first page."""
    is_ours = page.startswith(f"{ROOT}/") and page.isascii() and page.isprintable() and "\\" not in page
    return page if is_ours and len(page) <= MAX_NEXT and "//" not in page else address("tenants")
