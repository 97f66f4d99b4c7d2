"""What a client does with its tenant: graphs, keys, people, jobs, usage, webhooks, the audit log."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from recollect_client.answers.graphs import Graph, GraphDetail, Receipt
from recollect_client.answers.pages import Page
from recollect_client.answers.tenants import (
    AuditEntry,
    IssuedKey,
    IssuedWebhook,
    Job,
    Key,
    Member,
    Plan,
    StoredCounts,
    Tenant,
    UsageRow,
    Webhook,
)
from recollect_client.operations import listing, operation
from recollect_client.requests import (
    MAX_PAGE,
    Names,
    PagedRequest,
    Request,
    changed,
    get,
    given,
    listed,
    path_of,
    write,
)

ConflictPolicy = Literal["lww", "manual"]


class TenantOperations:
    """Methods for the tenant of the credential. Most of them need an admin's key."""

    @operation
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        if_match: str | None = None,
    ) -> Request[Any]:
        """Any route of the API, such as `request("POST", "/v1/graphs/work/reindex")`: its JSON, or else its text."""
        if method in ("GET", "HEAD"):
            return Request(method, path, Any, query=query or {})
        return write(method, path, Any, body, query=query, if_match=if_match)

    @operation
    def tenant(self) -> Request[Tenant]:
        """The tenant of the credential."""
        return get(path_of("tenant"), Tenant)

    @operation
    def update_tenant(
        self,
        *,
        name: str | None = None,
        time_zone: str | UnsetType | None = UNSET,
        retention_days: float | UnsetType | None = UNSET,
        if_match: str | None = None,
    ) -> Request[Tenant]:
        """Change the name or the settings; None sets a setting to its default."""
        settings = changed(time_zone=time_zone, retention_days=retention_days)
        return write("PATCH", path_of("tenant"), Tenant, given(name=name, settings=settings or None), if_match=if_match)

    @operation
    def plan(self) -> Request[Plan]:
        """The limits of the plan, and what is used of them."""
        return get(path_of("plan"), Plan)

    @listing
    def graphs(self, *, limit: int = MAX_PAGE) -> PagedRequest[Graph]:
        """The graphs that the credential may use. `limit` is the size of a page."""
        return PagedRequest(get(path_of("graphs"), Page[Graph], limit=limit))

    @operation
    def get_graph(self, name: str, *, as_of: int | str | None = None) -> Request[GraphDetail]:
        """One graph, with its newest revision and counts."""
        return get(path_of("graphs", name), GraphDetail, as_of=as_of)

    @operation
    def create_graph(
        self,
        name: str,
        *,
        conflict_policy: ConflictPolicy | None = None,
        kind_whitelist: Names | None = None,
        metadata: Mapping[str, Any] | None = None,
        time_zone: str | None = None,
    ) -> Request[Graph]:
        """Create a graph. Remembering in a graph that does not exist creates it, too."""
        body = given(
            name=name,
            conflict_policy=conflict_policy,
            kind_whitelist=listed(kind_whitelist),
            metadata=metadata,
            time_zone=time_zone,
        )
        return write("POST", path_of("graphs"), Graph, body)

    @operation
    def update_graph(
        self,
        graph: str,
        *,
        name: str | None = None,
        conflict_policy: ConflictPolicy | None = None,
        kind_whitelist: Sequence[str] | UnsetType | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        time_zone: str | UnsetType | None = UNSET,
        if_match: str | None = None,
    ) -> Request[Graph]:
        """Change a graph. `kind_whitelist` and `metadata` are replaced; they need `if_match`."""
        body = given(name=name, conflict_policy=conflict_policy, metadata=metadata)
        body |= changed(kind_whitelist=kind_whitelist, time_zone=time_zone)
        return write("PATCH", path_of("graphs", graph), Graph, body, if_match=if_match)

    @operation
    def erase_graph(self, name: str, *, dry_run: bool = False, if_match: str | None = None) -> Request[Receipt]:
        """Erase a graph and its history for good, or say what that would erase (`dry_run`)."""
        query = {"dry_run": str(dry_run).lower()}
        return write("DELETE", path_of("graphs", name), Receipt, query=query, if_match=if_match)

    @listing
    def keys(self, *, limit: int = MAX_PAGE) -> PagedRequest[Key]:
        """The API keys."""
        return PagedRequest(get(path_of("keys"), Page[Key], limit=limit))

    @operation
    def create_key(
        self,
        name: str,
        *,
        kind: Literal["agent", "admin"] | None = None,
        scopes: Names | None = None,
        graphs: Names | None = None,
        toolsets: Names | None = None,
        default_graph: str | None = None,
        requests_per_minute: int | None = None,
        expires_at: datetime | None = None,
    ) -> Request[IssuedKey]:
        """Create an API key, which may do no more than the credential of the client. Its secret is told this once."""
        body = given(
            name=name,
            kind=kind,
            scopes=listed(scopes),
            graphs=listed(graphs),
            toolsets=listed(toolsets),
            default_graph=default_graph,
            requests_per_minute=requests_per_minute,
            expires_at=expires_at,
        )
        return write("POST", path_of("keys"), IssuedKey, body)

    @operation
    def get_key(self, key_id: str | UUID) -> Request[Key]:
        """One API key."""
        return get(path_of("keys", key_id), Key)

    @operation
    def rotate_key(
        self, key_id: str | UUID, *, overlap_hours: float | None = None, if_match: str | None = None
    ) -> Request[IssuedKey]:
        """Replace a key by a new one; the old one is valid for some hours more."""
        body = given(overlap_hours=overlap_hours)
        return write("POST", path_of("keys", key_id, "rotate"), IssuedKey, body, if_match=if_match)

    @operation
    def revoke_key(self, key_id: str | UUID, *, if_match: str | None = None) -> Request[Key]:
        """End a key at once."""
        return write("DELETE", path_of("keys", key_id), Key, if_match=if_match)

    @listing
    def members(self, *, limit: int = MAX_PAGE) -> PagedRequest[Member]:
        """The people of the tenant."""
        return PagedRequest(get(path_of("members"), Page[Member], limit=limit))

    @listing
    def jobs(
        self,
        *,
        graph: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        limit: int = MAX_PAGE,
    ) -> PagedRequest[Job]:
        """The jobs of the tenant, newest first."""
        return PagedRequest(get(path_of("jobs"), Page[Job], graph=graph, kind=kind, status=status, limit=limit))

    @operation
    def get_job(self, job_id: str | UUID) -> Request[Job]:
        """One job."""
        return get(path_of("jobs", job_id), Job)

    @operation
    def cancel_job(self, job_id: str | UUID) -> Request[Job]:
        """Cancel a job."""
        return write("POST", path_of("jobs", job_id, "cancel"), Job)

    @listing
    def audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        object: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = MAX_PAGE,
    ) -> PagedRequest[AuditEntry]:
        """The audit log, newest first."""
        query = given(actor=actor, action=action, object=object, since=_text(since), until=_text(until), limit=limit)
        return PagedRequest(get(path_of("audit"), Page[AuditEntry], **query))

    @listing
    def usage(
        self,
        since: datetime,
        until: datetime,
        *,
        per: Literal["hour", "day", "month", "all"] | None = None,
        limit: int = MAX_PAGE,
    ) -> PagedRequest[UsageRow]:
        """How often each tool and route was called, by hour (UTC) or in sums."""
        query = given(per=per, limit=limit) | {"from": _text(since), "to": _text(until)}
        return PagedRequest(get(path_of("usage"), Page[UsageRow], **query))

    @listing
    def stored(self, *, limit: int = MAX_PAGE) -> PagedRequest[StoredCounts]:
        """What each graph holds."""
        return PagedRequest(get(path_of("usage", "stored"), Page[StoredCounts], limit=limit))

    @listing
    def webhooks(self, *, limit: int = MAX_PAGE) -> PagedRequest[Webhook]:
        """The webhooks."""
        return PagedRequest(get(path_of("webhooks"), Page[Webhook], limit=limit))

    @operation
    def create_webhook(
        self, url: str, events: Names, *, graphs: Names | None = None, description: str | None = None
    ) -> Request[IssuedWebhook]:
        """Have events sent to a URL. The secret is told this once."""
        body = given(url=url, events=listed(events), graphs=listed(graphs), description=description)
        return write("POST", path_of("webhooks"), IssuedWebhook, body)

    @operation
    def delete_webhook(self, webhook_id: str | UUID) -> Request[None]:
        """End a webhook."""
        return write("DELETE", path_of("webhooks", webhook_id), None)


def _text(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
