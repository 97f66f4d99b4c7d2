"""Every route that changes something is an act in the audit log, or says here why it is none."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import IssuedKey
from recollect.caller import Caller, Role
from recollect.platform.db import Database
from recollect.settings import Settings
from tests.contract.test_openapi_fuzz import DOCUMENT
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.oauth import granted
from tests.support.people import joined

READS_BY_POST = {"POST /v1/graphs/{name}/recall": "it reads"}
OF_THE_GRAPHS_LOG = {
    "POST /v1/graphs/{name}/memories": "a change of a graph, told by the graph's own log with who made it",
    "POST /v1/graphs/{name}/deduplicate": "upkeep by a job, which says who asked for it; its changes are in the log",
    "POST /v1/graphs/{name}/reindex": "upkeep by a job, which says who asked for it; it changes nothing that is told",
    "POST /v1/graphs/{name}/reembed": "upkeep by a job, which says who asked for it; it changes nothing that is told",
    "POST /v1/jobs/{job_id}/cancel": "the job says that it was cancelled; what it did is in the graph's log",
}
NO_ACTS = READS_BY_POST | OF_THE_GRAPHS_LOG
"""Routes that are no acts of administration, and why."""

CHANGING = sorted(
    f"{method.upper()} {path}"
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path.startswith("/v1/") and method not in ("get", "head", "options")
)


@dataclass(frozen=True)
class Tenant:
    """A tenant to administer, and what there is in it."""

    http: httpx2.AsyncClient
    caller: Caller
    db: Database
    pepper: bytes
    issue: NewApiKey
    owner: asyncpg.Connection

    async def done(self, method: str, path: str, **more: Any) -> Any:
        answer = await self.http.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def another_key(self) -> IssuedKey:
        return await self.issue(self.caller)

    async def person(self) -> str:
        return str((await joined(self.db, self.caller, Role.MEMBER, pepper=self.pepper)).id)

    async def actions(self) -> list[tuple[str, str, list[str]]]:
        found = await self.owner.fetch(
            "SELECT action, actor, objects FROM audit_log WHERE tenant_id = $1 ORDER BY id", self.caller.tenant_id
        )
        return [tuple(row) for row in found]


@pytest.fixture
async def tenant(
    gateway: RunningGateway,
    issue: NewApiKey,
    caller: Caller,
    db: Database,
    settings: Settings,
    owner: asyncpg.Connection,
) -> AsyncIterator[Tenant]:
    pepper = settings.key_secret.get_secret_value().encode()
    async with gateway.http((await issue(caller, kind="admin")).secret) as http:
        yield Tenant(http, caller, db, pepper, issue, owner)


async def create_key(tenant: Tenant) -> str:
    return f"key:{(await tenant.done('POST', '/v1/keys', json={'name': 'laptop'}))['id']}"


async def rotate_key(tenant: Tenant) -> str:
    old = (await tenant.another_key()).key.id
    await tenant.done("POST", f"/v1/keys/{old}/rotate", json={})
    return f"key:{old}"


async def revoke_key(tenant: Tenant) -> str:
    key = (await tenant.another_key()).key.id
    await tenant.done("DELETE", f"/v1/keys/{key}")
    return f"key:{key}"


async def report_key(tenant: Tenant) -> str:
    key = await tenant.another_key()
    await tenant.done("POST", "/v1/keys/report", json={"key": key.secret})
    return f"key:{key.key.id}"


async def invite(tenant: Tenant) -> str:
    invited = await tenant.done("POST", "/v1/invitations", json={"email": "grace@example.com"})
    return f"invitation:{invited['id']}"


async def revoke_invitation(tenant: Tenant) -> str:
    invitation = await invite(tenant)
    await tenant.done("DELETE", f"/v1/invitations/{invitation.partition(':')[2]}")
    return invitation


async def change_role(tenant: Tenant) -> str:
    person = await tenant.person()
    await tenant.done("PATCH", f"/v1/members/{person}", json={"role": "admin"})
    return f"person:{person}"


async def remove_member(tenant: Tenant) -> str:
    person = await tenant.person()
    await tenant.done("DELETE", f"/v1/members/{person}")
    return f"person:{person}"


async def revoke_grant(tenant: Tenant) -> str:
    grant = await granted(tenant.owner, tenant.caller.tenant_id, await tenant.person())
    await tenant.done("DELETE", f"/v1/grants/{grant}")
    return f"grant:{grant}"


async def create_graph(tenant: Tenant) -> str:
    return f"graph:{(await tenant.done('POST', '/v1/graphs', json={'name': 'notes'}))['id']}"


async def erase_graph(tenant: Tenant) -> str:
    graph = await create_graph(tenant)
    await tenant.done("DELETE", "/v1/graphs/notes")
    return graph


async def erase_person(tenant: Tenant) -> str:
    await tenant.done("POST", "/v1/graphs/default/memories", json={"items": [{"text": "tea", "about": ["Ada"]}]})
    await tenant.done("POST", "/v1/graphs/default/erase", json={"name": "Ada"})
    return await default_graph(tenant)


async def default_graph(tenant: Tenant) -> str:
    return f"graph:{(await tenant.done('GET', '/v1/graphs/default'))['id']}"


async def import_lines(tenant: Tenant) -> str:
    return await sent(tenant, "/v1/graphs/default/import")


async def start_import(tenant: Tenant) -> str:
    return await sent(tenant, "/v1/graphs/default/imports")


async def sent(tenant: Tenant, path: str) -> str:
    line = b'{"type": "entity", "name": "Ada", "entityType": "person", "observations": []}\n'
    await tenant.done("POST", path, content=line, headers={"Content-Type": "application/x-ndjson"})
    return await default_graph(tenant)


async def start_export(tenant: Tenant) -> str:
    await tenant.done("POST", "/v1/graphs/default/exports", json={"format": "json"})
    return await default_graph(tenant)


Act = Callable[[Tenant], Awaitable[str]]
"""Does it by the route; what it was done on."""

ACTS: dict[str, tuple[Act, str]] = {
    "POST /v1/keys": (create_key, "key.created"),
    "POST /v1/keys/{key_id}/rotate": (rotate_key, "key.rotated"),
    "DELETE /v1/keys/{key_id}": (revoke_key, "key.revoked"),
    "POST /v1/keys/report": (report_key, "key.reported"),
    "POST /v1/invitations": (invite, "member.invited"),
    "DELETE /v1/invitations/{invitation_id}": (revoke_invitation, "invitation.revoked"),
    "PATCH /v1/members/{person_id}": (change_role, "member.role_changed"),
    "DELETE /v1/members/{person_id}": (remove_member, "member.removed"),
    "DELETE /v1/grants/{grant_id}": (revoke_grant, "grant.ended"),
    "POST /v1/graphs": (create_graph, "graph.created"),
    "DELETE /v1/graphs/{name}": (erase_graph, "graph.erased"),
    "POST /v1/graphs/{name}/erase": (erase_person, "graph.person_erased"),
    "POST /v1/graphs/{name}/import": (import_lines, "graph.imported"),
    "POST /v1/graphs/{name}/imports": (start_import, "graph.imported"),
    "POST /v1/graphs/{name}/exports": (start_export, "graph.exported"),
}


def test_every_route_that_changes_something_is_an_act_or_says_why_not() -> None:
    assert sorted([*ACTS, *NO_ACTS]) == CHANGING


@pytest.mark.parametrize("route", ACTS)
async def test_an_act_has_one_entry_with_who_did_it_on_what(tenant: Tenant, route: str) -> None:
    act, action = ACTS[route]
    on = await act(tenant)
    found = [actor for did, actor, objects in await tenant.actions() if did == action and on in objects]
    assert len(found) == 1, await tenant.actions()
    [actor] = found
    assert actor == "reported" if action == "key.reported" else actor.startswith("key:")


async def test_exports_that_are_read_at_once_are_acts_too(tenant: Tenant) -> None:
    answer = await tenant.http.get("/v1/graphs/default/export")
    assert answer.status_code == 200
    assert (await tenant.actions())[-1][0] == "graph.exported"
    await tenant.http.get("/v1/audit/export")
    assert (await tenant.actions())[-1][0] == "audit.exported"
