"""/sign-in/local: one click on the first page signs in the owner of the demo tenant that `recollect local` made.

It is served only by a gateway that is reached from this machine alone, to clients on this machine, where the setting
names that owner. Whoever can open its address here, such as other users of the machine, may sign in so.
"""

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from litestar import Controller, post
from litestar.response import Redirect

from recollect.accounts.people import sessions
from recollect.accounts.people.model import Confinement
from recollect.errors import NotFound
from recollect.settings import LOOPBACK, Settings
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.web.pages import CONSOLE
from recollect_gateway.web.sessions import browser_of, session_cookie
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import read_form
from recollect_http.web.rendering import go_to

PATH = "/sign-in/local"


@dataclass(frozen=True, slots=True)
class LocalOwner:
    """A person whose account is of one tenant, which they own."""

    tenant_id: UUID
    person_id: UUID

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The owner that the settings name, where the gateway is reached from this machine alone."""
        if not settings.local_owner or not settings.is_local:
            return None
        tenant_id, _, person_id = settings.local_owner.partition("/")
        return cls(UUID(tenant_id), UUID(person_id))


def local_owner(request: AnyRequest) -> LocalOwner | None:
    """The owner whom a click of this client signs in; None for a client that is not on this machine."""
    is_here = request.client is not None and request.client.host in LOOPBACK
    return LocalOwner.of(request.app.state.settings) if is_here else None


class LocalOwnerController(Controller):
    """Signs the demo owner in."""

    path = PATH
    include_in_schema = False
    guards = (by_address("sign-in", lambda settings: settings.sign_ins_per_minute),)

    @post("/")
    async def sign_in(self, request: AnyRequest) -> Redirect:
        """Begin a session of the owner and go to the console. Raises NotFound where there is none."""
        await read_form(request)
        owner = local_owner(request)
        if owner is None:
            raise NotFound("There is no such page.")
        issued = await sessions.begin_session(
            request.app.state.databases,
            owner.person_id,
            browser_of(request),
            pepper=request.app.state.pepper,
            confinement=Confinement.of_account(owner.tenant_id),
        )
        answer = go_to(CONSOLE)
        answer.set_cookie(session_cookie(request, issued))
        return answer
