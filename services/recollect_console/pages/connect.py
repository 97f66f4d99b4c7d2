"""Connect: what to paste into each client, and who is connected: keys, and grants that people gave to clients."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey, NewKey
from recollect.accounts.oauth.grants import service as grants
from recollect.errors import ErrorKind, InvalidInput, RecollectError
from recollect.postgres.transactions import Transaction
from recollect_console.access import ADMIN
from recollect_console.authors import authors_of
from recollect_console.clients import client_cards, export_line
from recollect_console.paging import PAGE
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.server.hosts import Origins

MAX_NAME = 200
REFUSALS = frozenset({ErrorKind.INVALID, ErrorKind.FORBIDDEN, ErrorKind.CONFLICT})
"""Why a key may not be made, as the form says it."""

OVERLAP = timedelta(hours=24)
"""How long an old key stays valid after it is replaced."""

DONE = {"revoked": "It is revoked: it no longer works.", "ended": "The client's access has ended."}


class ConnectPages(Controller):
    """Clients, keys and grants. Members see how to connect; admins see who is connected."""

    path = "/connect"

    @get("/")
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The cards of clients and, for admins, keys and grants."""
        async with visit.reading_tenant() as tx:
            connected = await _connected(tx, visit) if visit.is_admin else {}
        return _page(visit, **connected)

    @post("/keys", opt=ADMIN, status_code=200)
    async def create_key(self, visit: NamedDependency[Visit]) -> Response[str]:
        """Make a key, which is shown this once, with the lines to paste that have it."""
        try:
            new = NewKey(_name(visit), kind="admin" if visit.value("kind") == "admin" else "agent")
            async with visit.changing_tenant() as tx:
                issued = await identity.create_key(tx, new, pepper=visit.request.app.state.pepper)
        except RecollectError as error:
            if error.kind not in REFUSALS:
                raise
            return await _refused(visit, error)
        return await _issued(visit, issued)

    @post("/keys/{key_id:uuid}/rotate", opt=ADMIN, status_code=200)
    async def rotate_key(self, visit: NamedDependency[Visit], key_id: FromPath[UUID]) -> Response[str]:
        """Replace this key by a new one like it; the old one stays valid for a day."""
        async with visit.changing_tenant() as tx:
            pepper = visit.request.app.state.pepper
            issued = await identity.rotate_key(tx, key_id, overlap=OVERLAP, pepper=pepper)
        return await _issued(visit, issued)

    @get("/keys/{key_id:uuid}/used", opt=ADMIN)
    async def check_first_call(self, visit: NamedDependency[Visit], key_id: FromPath[UUID]) -> Response[str]:
        """Whether a client has called with a key, which a page asks again and again until it has."""
        async with visit.reading_tenant() as tx:
            key = await identity.get_key(tx, key_id)
        return render(visit, "connect/used.html", key=key)

    @get("/keys/{key_id:uuid}/revoke", opt=ADMIN)
    async def ask_to_revoke(self, visit: NamedDependency[Visit], key_id: FromPath[UUID]) -> Response[str]:
        """What stops to work with a key."""
        async with visit.reading_tenant() as tx:
            key = await identity.get_key(tx, key_id)
        return render(visit, "connect/revoke.html", key=key)

    @post("/keys/{key_id:uuid}/revoke", opt=ADMIN)
    async def revoke_key(self, visit: NamedDependency[Visit], key_id: FromPath[UUID]) -> Redirect:
        """Revoke a key at once."""
        async with visit.changing_tenant() as tx:
            await identity.revoke_key(tx, key_id)
        return visit.go("connect", done="revoked")

    @post("/grants/{grant_id:uuid}/revoke", opt=ADMIN)
    async def revoke_grant(self, visit: NamedDependency[Visit], grant_id: FromPath[UUID]) -> Redirect:
        """End what a person let a client do, and all its tokens."""
        async with visit.changing_tenant() as tx:
            await grants.revoke_grant(tx, grant_id)
        return visit.go("connect", done="ended")


async def _connected(tx: Transaction, visit: Visit) -> dict[str, Any]:
    """The keys and grants of the tenant. Of those that no longer work, none is shown."""
    now = datetime.now(UTC)
    keys = await identity.list_keys(tx, limit=4 * PAGE)
    given = await grants.list_grants(tx, limit=4 * PAGE)
    valid = [key for key in keys if key.revoked_at is None and (key.expires_at is None or key.expires_at > now)]
    return {
        "keys": valid,
        "grants": [grant for grant in given if grant.revoked_at is None and grant.expires_at > now],
        "authors": await authors_of(tx, {key.created_by for key in valid}),
        "graph_names": {graph.id: graph.name for graph in visit.graphs},
    }


def _page(visit: Visit, *, status: int = 200, issued: IssuedKey | None = None, **context: Any) -> Response[str]:
    origins: Origins = visit.request.app.state.resources.origins
    base = origins.asked_at(visit.request.headers.get("host", ""))
    address = f"{base}/t/{visit.caller.tenant}/mcp"
    cards = client_cards(address, by_key=issued is not None)
    shown = {"keys": [], "grants": [], "authors": {}, "graph_names": {}, "fault": "", "name": "", "kind": "agent"}
    return render(
        visit,
        "connect/list.html",
        status=status,
        done=DONE,
        export=export_line(issued.secret) if issued else "",
        **(shown | {"cards": cards, "mcp_address": address, "issued": issued} | context),
    )


async def _issued(visit: Visit, issued: IssuedKey) -> Response[str]:
    async with visit.reading_tenant() as tx:
        return _page(visit, issued=issued, **await _connected(tx, visit))


async def _refused(visit: Visit, error: RecollectError) -> Response[str]:
    """The page with the form as it was sent."""
    async with visit.reading_tenant() as tx:
        connected = await _connected(tx, visit)
    name, kind = visit.value("name"), visit.value("kind")
    return _page(visit, status=400, fault=error.message, name=name, kind=kind, **connected)


def _name(visit: Visit) -> str:
    name = visit.value("name")
    if not 0 < len(name) <= MAX_NAME:
        raise InvalidInput(f"Give the key a name of 1 to {MAX_NAME} characters", path="name")
    return name
