"""The consent page: what it shows a person of a client, what they may choose, and how their form is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from litestar import Response

from recollect.accounts.oauth.clients.model import destination, is_loopback, private_scheme
from recollect.accounts.oauth.grants.model import ADMINISTRATIVE_SCOPES, IDENTITY_SCOPES, OPENID, Approval, within_role
from recollect.accounts.people.model import Membership, PersonSession
from recollect.caller import Scope
from recollect.errors import InvalidInput
from recollect.graph.graphs.model import Graph
from recollect_gateway.mcp_endpoint.tools import TOOLSETS, known_toolsets
from recollect_gateway.oauth.authorization_requests import AuthorizationRequest
from recollect_gateway.oauth.discovery import AUTHORIZE
from recollect_gateway.web.pages import page
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import field

Form = Mapping[str, Sequence[str]]

CHECKED = frozenset({"scope", "graph", "toolset"})
"""Fields of the form of which several boxes may be checked."""

MAX_GRAPHS = 200
"""Graphs that a page offers, by name; a person who wants another one allowed allows all."""

SCOPE_LABELS = {
    Scope.MEMORY_READ: "Read and search what is remembered",
    Scope.MEMORY_WRITE: "Remember, change and forget",
    Scope.TENANT_ADMIN: "Manage graphs, keys and members of the organisation",
}
TOOLSET_LABELS = {
    "agent": "Remember, recall, revise, forget, relate and explore: what agents need",
    "memory": "The tools of the official memory server",
    "organize": "Hierarchy, tags, importance, archiving, duplicates, files",
    "facts": "Facts with their history and neighbours",
    "lineage": "Graphs, versions and conflicts",
    "openai": "Search and fetch, as ChatGPT asks for them",
    "admin": "Jobs, the log of changes, and taking changes back",
}
"""What each toolset is for."""

ALLOW = "allow"
"""The decision that allows a client; any other denies."""


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """What one person is asked: the client's request, for one of their organisations, and the graphs to choose from."""

    request: AuthorizationRequest
    person: PersonSession
    membership: Membership
    graphs: Sequence[Graph]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The requested scopes that the person's role has."""
        return within_role(self.request.scopes, self.membership.role)


def consent_page(request: AnyRequest, question: ConsentQuestion, *, fault: str = "") -> Response[str]:
    """The page that asks the person."""
    authorization = question.request
    return page(
        request,
        "consent.html",
        status=400 if fault else 200,
        form_targets=_form_targets(authorization.redirect_uri),
        action=_own_address(request),
        client=authorization.client,
        client_host=urlsplit(authorization.client.id).hostname if authorization.client.is_document else None,
        goes_to=destination(authorization.redirect_uri),
        loopback=is_loopback(authorization.redirect_uri),
        private_scheme=private_scheme(authorization.redirect_uri),
        me=question.person,
        membership=question.membership,
        scopes=[
            (scope, SCOPE_LABELS[Scope(scope)], scope not in ADMINISTRATIVE_SCOPES)
            for scope in question.scopes
            if scope not in IDENTITY_SCOPES
        ],
        left_out=[scope for scope in authorization.scopes if scope not in question.scopes],
        identity=OPENID in question.scopes,
        graphs=question.graphs,
        toolsets=[(toolset, TOOLSET_LABELS[toolset]) for toolset in TOOLSET_LABELS if toolset in TOOLSETS],
        asked_toolsets=_asked_toolsets(request),
        fault=fault,
    )


def organisation_page(
    request: AnyRequest, authorization: AuthorizationRequest, memberships: Sequence[Membership]
) -> Response[str]:
    """The page on which a person chooses the organisation."""
    address = _own_address(request)
    return page(request, "consent_tenant.html", client=authorization.client, memberships=memberships, address=address)


def approval(question: ConsentQuestion, form: Form) -> Approval:
    """What the person approved; raises InvalidInput, such as where nothing is chosen."""
    authorization = question.request
    scopes = tuple(scope for scope in question.scopes if scope in IDENTITY_SCOPES or scope in form.get("scope", ()))
    if not set(scopes) - {"offline_access"}:
        raise InvalidInput("Choose what it may do, or deny")
    return Approval(
        question.person.person_id,
        authorization.client.id,
        authorization.client.name,
        scopes,
        _chosen_graphs(question, form),
        _chosen_toolsets(form),
        authorization.resource,
        authorization.redirect_uri,
        authorization.code_challenge,
        authorization.nonce,
    )


def _chosen_graphs(question: ConsentQuestion, form: Form) -> tuple[UUID, ...] | None:
    if field(form, "graphs") != "some":
        return None
    chosen = tuple(graph.id for graph in question.graphs if str(graph.id) in form.get("graph", ()))
    if not chosen:
        raise InvalidInput("Choose at least one graph, or all")
    return chosen


def _chosen_toolsets(form: Form) -> tuple[str, ...] | None:
    if field(form, "toolsets") != "some":
        return None
    chosen = known_toolsets(form.get("toolset", ()))
    if not chosen:
        raise InvalidInput("Choose at least one toolset, or all")
    return chosen


def _asked_toolsets(request: AnyRequest) -> list[str]:
    """The toolsets in the address that the client was given, such as `/mcp/x/memory`; none where it names none."""
    path = urlsplit(request.query_params.get("resource", "")).path.rstrip("/")
    _, separator, named = path.rpartition("/x/")
    asked = named.split(",") if separator else []
    return [toolset for toolset in asked if toolset in TOOLSETS]


def _own_address(request: AnyRequest) -> str:
    """The address of this request, to which the form is sent: it holds the client's parameters."""
    return f"{AUTHORIZE}?{request.scope['query_string'].decode('latin-1')}"


def _form_targets(redirect_uri: str) -> tuple[str, ...]:
    """Where the answer to the form may lead: to the client, and wherever the client's own page redirects by https.

    A policy cannot name IPv6 addresses, so for one it names the scheme; nor hosts of a scheme that is a program's own.
    """
    if scheme := private_scheme(redirect_uri):
        return "https:", f"{scheme}:"
    parts = urlsplit(redirect_uri)
    if parts.scheme == "https":
        return ("https:",)
    return "https:", "http:" if "[" in parts.netloc else f"http://{parts.netloc}"
