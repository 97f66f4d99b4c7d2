"""The consent page: what a person is told of a client, what they may choose, and what their form says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from litestar import Request, Response

from recollect.accounts.oauth.clients.model import is_loopback
from recollect.accounts.oauth.grants.model import IDENTITY_SCOPES, OPENID, Approval, within_role
from recollect.accounts.people.model import Membership, PersonSession
from recollect.caller import Scope
from recollect.errors import InvalidInput
from recollect.graph.graphs.model import Graph
from recollect_gateway.mcp_endpoint.catalogue import TOOLSETS, known_toolsets
from recollect_gateway.oauth.authorization_requests import AuthorizationRequest
from recollect_gateway.oauth.discovery import AUTHORIZE
from recollect_gateway.web.forms import field
from recollect_gateway.web.pages import page

AnyRequest = Request[Any, Any, Any]
Form = Mapping[str, Sequence[str]]

CHECKED = frozenset({"scope", "graph", "toolset"})
"""Boxes of the form, of which several may be checked."""

MAX_GRAPHS = 200
"""Graphs that a page offers, by name; where there are more, the others are reached by allowing all."""

SAID = {
    Scope.MEMORY_READ: "Read and search what is remembered",
    Scope.MEMORY_WRITE: "Remember, change and forget",
    Scope.TENANT_ADMIN: "Manage graphs, keys and members of the organisation",
}
ALLOW = "allow"
"""The decision by which a client is allowed; any other denies."""


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """What one person is asked: which client, for which of their organisations, and what there is to choose from."""

    request: AuthorizationRequest
    person: PersonSession
    membership: Membership
    graphs: Sequence[Graph]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that are asked for and that the person's role holds."""
        return within_role(self.request.scopes, self.membership.role)


def ask(request: AnyRequest, question: ConsentQuestion, *, fault: str = "") -> Response[str]:
    """The page that asks."""
    asked = question.request
    return page(
        request,
        "consent.html",
        status=400 if fault else 200,
        form_targets=_form_targets(asked.redirect_uri),
        action=_here(request),
        client=asked.client,
        client_host=urlsplit(asked.client.id).hostname if asked.client.is_document else None,
        goes_to=urlsplit(asked.redirect_uri).netloc,
        loopback=is_loopback(asked.redirect_uri),
        me=question.person,
        membership=question.membership,
        scopes=[(scope, SAID[Scope(scope)]) for scope in question.scopes if scope not in IDENTITY_SCOPES],
        left_out=[scope for scope in asked.scopes if scope not in question.scopes],
        identity=OPENID in question.scopes,
        graphs=question.graphs,
        toolsets=sorted(TOOLSETS),
        fault=fault,
    )


def ask_where(request: AnyRequest, asked: AuthorizationRequest, memberships: Sequence[Membership]) -> Response[str]:
    """The page that asks for which organisation."""
    here = _here(request)
    return page(request, "consent_tenant.html", client=asked.client, memberships=memberships, here=here)


def approval(question: ConsentQuestion, form: Form) -> Approval:
    """What the person said yes to; raises InvalidInput, such as for what was never asked for."""
    asked = question.request
    scopes = tuple(scope for scope in question.scopes if scope in IDENTITY_SCOPES or scope in form.get("scope", ()))
    if not set(scopes) - {"offline_access"}:
        raise InvalidInput("Choose what it may do, or deny")
    return Approval(
        question.person.person_id,
        asked.client.id,
        asked.client.name,
        scopes,
        _chosen_graphs(question, form),
        _chosen_toolsets(form),
        asked.resource,
        asked.redirect_uri,
        asked.code_challenge,
        asked.nonce,
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


def _here(request: AnyRequest) -> str:
    """The address of this request, which the form is sent to: it holds what the client asks for."""
    return f"{AUTHORIZE}?{request.scope['query_string'].decode('latin-1')}"


def _form_targets(redirect_uri: str) -> tuple[str, ...]:
    """Where the answer to the form may lead: to the client, and wherever the client's own page goes on to by https.

    A policy cannot name IPv6 addresses, so for one it names the scheme.
    """
    parts = urlsplit(redirect_uri)
    if parts.scheme == "https":
        return ("https:",)
    return "https:", "http:" if "[" in parts.netloc else f"http://{parts.netloc}"
