"""/app: the organisations of a person, of whom one that has a single one goes on at once."""

from litestar import Controller, Response, get
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.people import service as people
from recollect_console.access import NotSignedIn
from recollect_console.rendering import answer
from recollect_console.visit import DEFAULT_GRAPH
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_http.requests import AnyRequest
from recollect_http.web.rendering import go_to

FIRST_PAGE = "memory"


class IndexPages(Controller):
    """The way into the console."""

    path = "/app"
    include_in_schema = False

    @get("/")
    async def choose(self, request: AnyRequest) -> Response[str] | Redirect:
        """The person's organisations; a single one is gone to, unless the address asks for the choice."""
        session = await signed_in(request)
        if session is None:
            raise NotSignedIn("Sign in first.")
        found = await people.list_memberships(
            request.app.state.databases, session.person_id, within=session.confined_to
        )
        active = [membership for membership in found if membership.tenant_status == "active"]
        if len(active) == 1 and "choose" not in request.query_params:
            return go_to(f"/app/{active[0].tenant}/{DEFAULT_GRAPH}/{FIRST_PAGE}")
        context = {"memberships": active, "me": session, "first_page": f"{DEFAULT_GRAPH}/{FIRST_PAGE}"}
        return answer(request, "organisations.html", 200, context)

    @get("/{tenant:str}", sync_to_thread=False)
    def begin(self, tenant: FromPath[str]) -> Redirect:
        """The first page of an organisation, which says whether the person may see it."""
        return go_to(f"/app/{tenant}/{DEFAULT_GRAPH}/{FIRST_PAGE}")

    @get("/{tenant:str}/{graph:str}", sync_to_thread=False)
    def begin_graph(self, tenant: FromPath[str], graph: FromPath[str]) -> Redirect:
        """The first page of a graph."""
        return go_to(f"/app/{tenant}/{graph}/{FIRST_PAGE}")
