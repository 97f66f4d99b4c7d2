"""Every route that changes something has an entry in the audit log, or a reason here why it has none."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import IssuedKey
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from tests.support.dns_server import NameServer, name_server
from tests.support.documents import DOCUMENT
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.jobs import employed
from tests.support.oauth import granted
from tests.support.people import browser, joined, sign_in

READS_BY_POST = {"POST /v1/graphs/{name}/recall": "it reads", "POST /v1/graphs/{name}/explore": "it reads"}
OF_THE_GRAPHS_LOG = {
    "POST /v1/graphs/{name}/relate": "as memories",
    "POST /v1/graphs/{name}/revise": "as memories",
    "POST /v1/graphs/{name}/forget": "as memories",
    "POST /v1/graphs/{name}/nodes/batch": "as memories",
    "POST /v1/graphs/{name}/relations/batch": "as memories",
    "POST /v1/graphs/{name}/memories": "a change of a graph, told by the graph's own log with who made it",
    "POST /v1/graphs/{name}/conversations": "a change of a graph, told by the graph's own log with who made it",
    "POST /v1/graphs/{name}/deduplicate": "upkeep by a job, which says who asked for it; its changes are in the log",
    "POST /v1/graphs/{name}/reindex": "upkeep by a job, which says who asked for it; it changes nothing that is told",
    "POST /v1/graphs/{name}/reembed": "upkeep by a job, which says who asked for it; it changes nothing that is told",
    "POST /v1/graphs/{name}/distil": "by a job, which says who asked for it; the facts are in the log",
    "DELETE /v1/graphs/{name}/distilled": "as memories",
    "PUT /v1/graphs/{name}/dismissals/{node_id}/{other_id}": "the list of dismissed pairs says who and when",
    "DELETE /v1/graphs/{name}/dismissals/{node_id}/{other_id}": "it changes nothing that is remembered",
    "POST /v1/jobs/{job_id}/cancel": "the job says that it was cancelled; what it did is in the graph's log",
}
TOLD_BY_DELIVERIES = {
    "POST /v1/webhooks/{webhook_id}/test": "it sends what says nothing to where the webhook sends; listed there",
    "POST /v1/webhooks/{webhook_id}/replay": "it sends again what was sent there before; listed there",
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay": "as the one above",
}
NO_ACTS = READS_BY_POST | OF_THE_GRAPHS_LOG | TOLD_BY_DELIVERIES
"""Routes that are not acts of administration, with reasons."""

CHANGING = sorted(
    f"{method.upper()} {path}"
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path.startswith("/v1/") and method not in ("get", "head", "options")
)


@dataclass(frozen=True)
class Tenant:
    """A tenant to administer, with an admin's client."""

    http: httpx2.AsyncClient
    caller: Caller
    db: Database
    settings: Settings
    issue: NewApiKey
    owner: asyncpg.Connection
    gateway: RunningGateway
    dns: NameServer

    @property
    def pepper(self) -> bytes:
        return self.settings.key_secret.get_secret_value().encode()

    async def done(self, method: str, path: str, **more: Any) -> Any:
        answer = await self.http.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def another_key(self) -> IssuedKey:
        return await self.issue(self.caller)

    async def person(self) -> str:
        return str((await joined(Databases(self.db), self.caller, Role.MEMBER, pepper=self.pepper)).id)

    async def actions(self) -> list[tuple[str, str, list[str]]]:
        found = await self.owner.fetch(
            "SELECT action, actor, objects FROM audit_log WHERE tenant_id = $1 ORDER BY id", self.caller.tenant_id
        )
        return [tuple(row) for row in found]


@pytest.fixture(scope="module")
async def dns() -> AsyncIterator[NameServer]:
    async with name_server() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(settings: Settings, dns: NameServer) -> Iterator[RunningGateway]:
    """A gateway that asks the name server of the tests."""
    own = {"outbound_networks": ["127.0.0.0/8"], "dns_servers": [dns.address]}
    with serving(settings.model_copy(update=own)) as running:
        yield running


@pytest.fixture
async def tenant(
    gateway: RunningGateway,
    issue: NewApiKey,
    caller: Caller,
    db: Database,
    settings: Settings,
    owner: asyncpg.Connection,
    dns: NameServer,
) -> AsyncIterator[Tenant]:
    async with gateway.http((await issue(caller, kind="admin")).secret) as http:
        yield Tenant(http, caller, db, settings, issue, owner, gateway, dns)


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


async def configure_graph(tenant: Tenant) -> str:
    graph = await create_graph(tenant)
    await tenant.done("PATCH", "/v1/graphs/notes", json={"conflict_policy": "manual"})
    return graph


async def add_provider(tenant: Tenant) -> str:
    new = {
        "name": "Acme",
        "issuer": "https://login.example.com",
        "client_id": "recollect",
        "client_secret": "the-secret-of-acme",
    }
    return f"identity_provider:{(await tenant.done('POST', '/v1/identity-providers', json=new))['id']}"


async def claim_domain(tenant: Tenant) -> str:
    claim = await tenant.done("POST", "/v1/email-domains", json={"domain": f"{tenant.caller.tenant}.example"})
    tenant.dns.records[claim["record_name"]] = [claim["record_value"]]
    return f"email_domain:{claim['id']}"


async def verify_domain(tenant: Tenant) -> str:
    claimed = await claim_domain(tenant)
    await tenant.done("POST", f"{place(claimed)}/verify")
    return claimed


async def trust_issuer(tenant: Tenant) -> str:
    new = {"name": "Acme", "issuer": "https://machines.example.com"}
    return f"trusted_issuer:{(await tenant.done('POST', '/v1/trusted-issuers', json=new))['id']}"


async def create_webhook(tenant: Tenant) -> str:
    new = {"url": "https://hooks.example.com/recollect", "events": ["graph.changed"]}
    return f"webhook:{(await tenant.done('POST', '/v1/webhooks', json=new))['id']}"


async def rotate_webhook_secret(tenant: Tenant) -> str:
    webhook = await create_webhook(tenant)
    await tenant.done("POST", f"{place(webhook)}/secret", json={})
    return webhook


async def set_model(tenant: Tenant) -> str:
    await tenant.done("PUT", "/v1/language-model", json={"url": "https://model.example.com/v1", "model": "x"})
    return f"tenant:{tenant.caller.tenant_id}"


async def remove_model(tenant: Tenant) -> str:
    made = await set_model(tenant)
    for _ in range(2):  # The second time there is none, which has no entry.
        await tenant.done("DELETE", "/v1/language-model")
    return made


async def change_tenant(tenant: Tenant) -> str:
    await tenant.done("PATCH", "/v1/tenant", json={"name": "Analytical Engines"})
    return f"tenant:{tenant.caller.tenant_id}"


async def end_session(tenant: Tenant) -> str:
    person = await joined(Databases(tenant.db), tenant.caller, Role.READER, pepper=tenant.pepper)
    async with browser(tenant.gateway) as http:
        await sign_in(http, person.email)
        http.headers["X-Recollect-Tenant"] = tenant.caller.tenant
        session = (await http.get("/v1/sessions")).json()["items"][0]["id"]
        assert (await http.delete(f"/v1/sessions/{session}")).is_success
    return f"session:{session}"


async def delete_output(tenant: Tenant) -> str:
    async with employed(tenant.settings, tenant.db) as worker:
        job = (await tenant.done("POST", "/v1/graphs/default/exports", json={"format": "json"}))["id"]
        await job_loop.sweep(worker)
        for _ in range(2):  # The second time there is nothing to delete.
            await tenant.done("DELETE", f"/v1/jobs/{job}/output")
    return f"job:{job}"


def place(made: str) -> str:
    """The address of a new object: `email_domain:0190…` is at `/v1/email-domains/0190…`."""
    kind, _, id_ = made.partition(":")
    return f"/v1/{kind.replace('_', '-')}s/{id_}"


def changing(make: Callable[[Tenant], Awaitable[str]], **body: Any) -> Callable[[Tenant], Awaitable[str]]:
    """The act of creating an object and changing it."""

    async def change(tenant: Tenant) -> str:
        made = await make(tenant)
        for _ in range(2):  # The second time it is so already, which has no entry.
            await tenant.done("PATCH", place(made), json=body)
        return made

    return change


def deleting(make: Callable[[Tenant], Awaitable[str]]) -> Callable[[Tenant], Awaitable[str]]:
    """The act of creating an object and deleting it."""

    async def delete(tenant: Tenant) -> str:
        made = await make(tenant)
        await tenant.done("DELETE", place(made))
        return made

    return delete


Act = Callable[[Tenant], Awaitable[str]]
"""Performs the act by its route, and returns the object."""

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
    "PATCH /v1/graphs/{name}": (configure_graph, "graph.configured"),
    "POST /v1/identity-providers": (add_provider, "identity_provider.created"),
    "PATCH /v1/identity-providers/{provider_id}": (changing(add_provider, enabled=False), "identity_provider.changed"),
    "DELETE /v1/identity-providers/{provider_id}": (deleting(add_provider), "identity_provider.deleted"),
    "POST /v1/email-domains": (claim_domain, "email_domain.claimed"),
    "POST /v1/email-domains/{domain_id}/verify": (verify_domain, "email_domain.verified"),
    "PATCH /v1/email-domains/{domain_id}": (changing(claim_domain, role="reader"), "email_domain.changed"),
    "DELETE /v1/email-domains/{domain_id}": (deleting(claim_domain), "email_domain.dropped"),
    "POST /v1/trusted-issuers": (trust_issuer, "trusted_issuer.created"),
    "PATCH /v1/trusted-issuers/{issuer_id}": (changing(trust_issuer, claim="groups"), "trusted_issuer.changed"),
    "DELETE /v1/trusted-issuers/{issuer_id}": (deleting(trust_issuer), "trusted_issuer.deleted"),
    "POST /v1/webhooks": (create_webhook, "webhook.created"),
    "PATCH /v1/webhooks/{webhook_id}": (changing(create_webhook, enabled=False), "webhook.changed"),
    "POST /v1/webhooks/{webhook_id}/secret": (rotate_webhook_secret, "webhook.secret_rotated"),
    "DELETE /v1/webhooks/{webhook_id}": (deleting(create_webhook), "webhook.deleted"),
    "PUT /v1/language-model": (set_model, "language_model.set"),
    "DELETE /v1/language-model": (remove_model, "language_model.removed"),
    "PATCH /v1/tenant": (change_tenant, "tenant.changed"),
    "DELETE /v1/sessions/{session_id}": (end_session, "session.ended"),
    "DELETE /v1/jobs/{job_id}/output": (delete_output, "job.output_deleted"),
    "POST /v1/graphs/{name}/erase": (erase_person, "graph.person_erased"),
    "POST /v1/graphs/{name}/import": (import_lines, "graph.imported"),
    "POST /v1/graphs/{name}/imports": (start_import, "graph.imported"),
    "POST /v1/graphs/{name}/exports": (start_export, "graph.exported"),
}


@pytest.mark.proves("security: audit-entries")
def test_every_route_that_changes_something_is_audited_or_has_a_reason() -> None:
    assert sorted([*ACTS, *NO_ACTS]) == CHANGING


@pytest.mark.proves("security: audit-entries")
@pytest.mark.parametrize("route", ACTS)
async def test_an_act_has_one_entry_with_its_actor_and_object(tenant: Tenant, route: str) -> None:
    act, action = ACTS[route]
    on = await act(tenant)
    found = [actor for did, actor, objects in await tenant.actions() if did == action and on in objects]
    assert len(found) == 1, await tenant.actions()
    [actor] = found
    assert (
        actor == "reported"
        if action == "key.reported"
        else actor.startswith("person:" if action == "session.ended" else "key:")
    )


async def test_entries_contain_no_secret_no_address_and_no_name(tenant: Tenant) -> None:
    made = [await make(tenant) for make in (add_provider, claim_domain, trust_issuer, create_webhook, change_tenant)]
    changes = {"name": "Else", "client_secret": "another-secret"}, {"role": "reader"}, {"name": "Else"}
    for thing, change in zip(made, (*changes, {"url": "https://hooks.example.com/else"}), strict=False):
        await tenant.done("PATCH", place(thing), json=change)
    told = (await tenant.http.get("/v1/audit")).text
    for kept in ("secret-of", "another-secret", "example", "Acme", "Else", "Analytical"):
        assert kept not in told.replace(tenant.caller.tenant, ""), kept
    entries = [(entry["action"], entry["details"]) for entry in (await tenant.http.get("/v1/audit")).json()["items"]]
    assert ("identity_provider.changed", {"fields": ["name", "client_secret"]}) in entries
    assert ("webhook.changed", {"fields": ["url"]}) in entries
    assert ("email_domain.changed", {"role": "reader"}) in entries


async def test_the_loss_of_a_domain_proof_has_one_entry(tenant: Tenant) -> None:
    claimed = await verify_domain(tenant)
    await tenant.done("POST", f"{place(claimed)}/verify")
    tenant.dns.records.clear()
    for _ in range(2):
        assert (await tenant.http.post(f"{place(claimed)}/verify")).status_code == 409
    of_it = [action for action, _, objects in await tenant.actions() if claimed in objects]
    assert of_it == ["email_domain.claimed", "email_domain.verified", "email_domain.unproven"]


async def test_synchronous_exports_are_audited_too(tenant: Tenant) -> None:
    answer = await tenant.http.get("/v1/graphs/default/export")
    assert answer.status_code == 200
    assert (await tenant.actions())[-1][0] == "graph.exported"
    await tenant.http.get("/v1/audit/export")
    assert (await tenant.actions())[-1][0] == "audit.exported"
