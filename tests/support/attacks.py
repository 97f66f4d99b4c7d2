"""Requests of one tenant with ids of another, and what their answers must not reveal."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import httpx2

from recollect.caller import Caller
from tests.support.documents import DOCUMENT, OF_TENANTS
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.routes import OPEN_TO_ALL, example_request

NAMED = {
    "key_id": "SELECT id FROM api_keys WHERE tenant_id = $1",
    "person_id": "SELECT person_id FROM members WHERE tenant_id = $1",
    "invitation_id": "SELECT id FROM invitations WHERE tenant_id = $1",
    "domain_id": "SELECT id FROM email_domains WHERE tenant_id = $1",
    "issuer_id": "SELECT id FROM trusted_issuers WHERE tenant_id = $1",
    "provider_id": "SELECT id FROM identity_providers WHERE tenant_id = $1",
    "grant_id": "SELECT id FROM oauth_grants WHERE tenant_id = $1",
    "webhook_id": "SELECT id FROM webhooks WHERE tenant_id = $1",
    "delivery_id": "SELECT id FROM webhook_deliveries WHERE tenant_id = $1",
    "job_id": "SELECT job_id FROM job_outputs WHERE tenant_id = $1",
    "session_id": "SELECT s.id FROM sessions s JOIN members m USING (person_id) WHERE m.tenant_id = $1",
    "name": "SELECT id FROM graphs WHERE tenant_id = $1 AND name = 'default'",
    "node": "SELECT id FROM nodes WHERE tenant_id = $1 AND name = 'Ada'",
    "node_id": "SELECT node_id FROM dismissals WHERE tenant_id = $1",
    "other_id": "SELECT other_id FROM dismissals WHERE tenant_id = $1",
}
"""The parameters of paths, and the places where a tenant has a value for them."""

ROUTES = sorted(
    (route for route in OF_TENANTS if route[1] not in OPEN_TO_ALL),
    key=lambda route: (route[0] == "delete", -len(route[1])),
)
"""The routes in order: those that delete come last, and deletions of whole graphs at the very end."""


@dataclass(frozen=True)
class Attack:
    """One request; `names` fill the parameters of its path, `graph` is the graph in its body."""

    method: str
    path: str
    names: Mapping[str, str]
    graph: str = ""
    cursor: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, http: httpx2.AsyncClient) -> httpx2.Response:
        """Send the request with the body of the documented example."""
        asked: dict[str, Any] = example_request(
            DOCUMENT, self.method, self.path, dict(self.names), cursor=self.cursor, graphs=[self.graph]
        )
        asked["headers"] = {**asked.get("headers", {}), **self.headers}
        return await http.request(self.method, **asked)

    @property
    def url(self) -> str:
        """The address of the request."""
        return self.path.format(**self.names)

    def requested_ids(self) -> set[str]:
        """The ids in the request, which an answer may repeat."""
        return {*self.names.values(), self.graph} - {""}


def attacks(names: Mapping[str, str], own: Mapping[str, str]) -> list[Attack]:
    """Requests to every route with these ids; where a path has several, also with some of the caller's own."""
    made = []
    for method, path in ROUTES:
        made.append(Attack(method, path, names, names["name"]))
        placeholders = re.findall(r"\{(\w+)\}", path)
        for count in range(1, len(placeholders)):
            mixed = {**names, **{each: own[each] for each in placeholders[:count]}}
            made.append(Attack(method, path, mixed, names["name"]))
        if placeholders == ["name"]:
            made.append(Attack(method, path, {**names, "name": "default"}, names["name"]))
    return made


def anonymous(response: httpx2.Response, attack: Attack) -> str:
    """The status and the error of an answer, without the requested ids; of a success, only that it was one."""
    text = "" if response.is_success else response.text
    for id_ in attack.requested_ids():
        text = text.replace(id_, "…")
    return f"{response.status_code} {text}"


@asynccontextmanager
async def admin_of(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with an admin's key of that tenant."""
    async with gateway.http((await issue(caller, kind="admin")).secret) as http:
        yield http


async def names_of(owner: asyncpg.Connection, caller: Caller) -> dict[str, str]:
    """An id or name of the tenant for every path parameter."""
    names = {name: await owner.fetchval(query, caller.tenant_id) for name, query in NAMED.items()}
    assert None not in names.values(), names
    return {name: str(id_) for name, id_ in names.items()}


def ids_in(rows: list[str]) -> set[str]:
    """Every id in these rows."""
    return set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "".join(rows)))


def lasting(rows: list[str]) -> list[str]:
    """The rows without those that the victim's own calls write later: usage, and the last use of a key."""
    kept = [re.sub(r'"last_used_at": ("[^"]*"|null)', "", row) for row in rows if '"hour": ' not in row]
    return sorted(kept)
