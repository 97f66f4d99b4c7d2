"""/v1/trusted-issuers: issuers whose access tokens the tenant accepts in addition to ours."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
from msgspec import Meta, Struct

from recollect.accounts.oauth.issuers import service as trusted
from recollect.accounts.oauth.issuers.model import (
    DEFAULT_ALGORITHM,
    DEFAULT_CLAIM,
    DEFAULT_RULES,
    MAX_CLAIM,
    MAX_ISSUER,
    MAX_NAME,
    MAX_RULE_GRAPHS,
    MAX_RULES,
    MAX_VALUE,
    IssuerChange,
    NewIssuer,
    Rule,
    TrustedIssuer,
)
from recollect.accounts.token_issuers import ALGORITHMS
from recollect.caller import Caller, Scope
from recollect.graph.graphs import service as graphs
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import CreatedAt, CreatedBy, DisabledAt, GraphIds, GraphNames
from recollect_http.openapi.routes import delete, get, patch, post
from recollect_http.pages import Page

IssuerName = Annotated[str, Meta(description="Name of the issuer for people", examples=["Acme"])]
Name = Annotated[IssuerName, Meta(min_length=1, max_length=MAX_NAME)]
Issuer = Annotated[
    str,
    Meta(
        description="Issuer identifier (`iss`) of the tokens, without query or fragment",
        examples=["https://login.acme.example"],
    ),
]
Algorithm = Annotated[str, Meta(description=f"Algorithm that signs the tokens: {', '.join(ALGORITHMS)}")]
ClaimName = Annotated[
    str, Meta(description="Name of the token's claim that the rules look at: words in a text, or a list")
]
Claim = Annotated[ClaimName, Meta(min_length=1, max_length=MAX_CLAIM, examples=["groups"])]
ClaimValue = Annotated[str, Meta(description="Value of the claim to which the rule applies", examples=["sales-agents"])]
_OF_SCOPES = "Scopes that a token gets by the rule: `memory:read`, `memory:write`, `tenant:admin`"
RuleScopes = Annotated[list[str], Meta(description=_OF_SCOPES)]
IssuerInPath = Annotated[UUID, PathParameter(description="Id of the trusted issuer")]


class RuleBody(Struct, frozen=True):
    """A rule of a trusted issuer: what a token with a value of the claim may do."""

    value: ClaimValue
    scopes: RuleScopes
    graphs: GraphIds


class TrustRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What a token with a value of the claim may do."""

    value: Annotated[ClaimValue, Meta(min_length=1, max_length=MAX_VALUE)]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=len(Scope), description=_OF_SCOPES)]
    graphs: Annotated[GraphNames, Meta(max_length=MAX_RULE_GRAPHS)] | None = None


_OF_RULES = "Rules that map values of the claim to scopes and graphs"
Rules = Annotated[list[TrustRule], Meta(min_length=1, max_length=MAX_RULES, description=_OF_RULES)]
NewRules = Annotated[
    Rules, Meta(description=f"{_OF_RULES}; null: `memory:read` and `memory:write` give the scopes of these names")
]


class IssuerBody(Struct, frozen=True):
    """An issuer whose access tokens the tenant accepts."""

    id: Annotated[str, Meta(description="Id of the trusted issuer, a UUID")]
    name: IssuerName
    issuer: Issuer
    algorithm: Algorithm
    claim: ClaimName
    rules: Annotated[list[RuleBody], Meta(description=_OF_RULES)]
    resource: Annotated[
        str, Meta(description="Address of the MCP endpoint, which tokens must name as their audience (`aud`)")
    ]
    created_at: CreatedAt
    created_by: CreatedBy
    disabled_at: DisabledAt


class TrustIssuer(Struct, frozen=True, forbid_unknown_fields=True):
    """An issuer to trust, with rules for what its tokens may do.

    A token that matches several rules has the scopes of all of them, in the graphs that all of them name.
    """

    name: Name
    issuer: Annotated[Issuer, Meta(min_length=1, max_length=MAX_ISSUER)]
    algorithm: Algorithm = DEFAULT_ALGORITHM
    claim: Claim = DEFAULT_CLAIM
    rules: NewRules | None = None


class ChangeIssuer(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a trusted issuer to change. A field that is null or omitted stays."""

    name: Name | None = None
    algorithm: Algorithm | None = None
    claim: Claim | None = None
    rules: Rules | None = None
    enabled: Annotated[bool | None, Meta(description="Whether tokens of the issuer are accepted")] = None


class TrustedIssuerController(Controller):
    """List, trust, change and delete issuers of access tokens."""

    path = "/trusted-issuers"
    tags = ("trusted issuers",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="All issuers that the tenant trusts.", summary="List trusted issuers")
    async def list_trusted_issuers(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State
    ) -> Page[IssuerBody]:
        """List the issuers whose access tokens the tenant accepts. There are few, so all are on one page."""
        async with db.transaction(request.user, read_only=True) as tx:
            return Page([_body(issuer, request.user, state) for issuer in await trusted.list_issuers(tx)], None)

    @post(
        "/",
        response_description="The issuer, which is trusted now.",
        summary="Trust an issuer",
        before_request=valid_body(TrustIssuer),
    )
    async def create_trusted_issuer(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[TrustIssuer]
    ) -> IssuerBody:
        """Accept access tokens of an issuer, with the scopes and graphs that the rules give.

        The rules cannot give more than the caller's own access. The response is 409 `issuer_exists` if the issuer is
        trusted already.
        """
        state.issuers.require_address(data.issuer, path="issuer")
        async with db.transaction(request.user) as tx:
            rules = DEFAULT_RULES if data.rules is None else await _rules(tx, data.rules)
            new = NewIssuer(data.name, data.issuer, data.algorithm, data.claim, rules)
            return _body(await trusted.trust_issuer(tx, new), request.user, state)

    @patch(
        "/{issuer_id:uuid}",
        response_description="The trusted issuer after the change.",
        summary="Update a trusted issuer",
        before_request=valid_body(ChangeIssuer),
    )
    async def update_trusted_issuer(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        issuer_id: IssuerInPath,
        data: JSONBody[ChangeIssuer],
    ) -> IssuerBody:
        """Change the rules of a trusted issuer, or disable or enable it. It takes effect with the next request."""
        async with db.transaction(request.user) as tx:
            rules = None if data.rules is None else await _rules(tx, data.rules)
            change = IssuerChange(data.name, data.algorithm, data.claim, rules, data.enabled)
            return _body(await trusted.change_issuer(tx, issuer_id, change), request.user, state)

    @delete(
        "/{issuer_id:uuid}", response_description="The issuer is no longer trusted.", summary="Delete a trusted issuer"
    )
    async def delete_trusted_issuer(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], issuer_id: IssuerInPath
    ) -> None:
        """Stop accepting tokens of an issuer."""
        async with db.transaction(request.user) as tx:
            await trusted.delete_issuer(tx, issuer_id)


async def _rules(tx: Transaction, rules: Sequence[TrustRule]) -> tuple[Rule, ...]:
    ids = await graphs.graph_ids(tx, [name for rule in rules for name in rule.graphs or ()])
    return tuple(
        Rule(
            rule.value,
            tuple(dict.fromkeys(rule.scopes)),
            None if rule.graphs is None else tuple(ids[name] for name in rule.graphs),
        )
        for rule in rules
    )


def _body(issuer: TrustedIssuer, caller: Caller, state: State) -> IssuerBody:
    return IssuerBody(
        id=str(issuer.id),
        name=issuer.name,
        issuer=issuer.issuer,
        algorithm=issuer.algorithm,
        claim=issuer.claim,
        rules=[
            RuleBody(
                rule.value,
                [str(scope) for scope in rule.scopes],
                None if rule.graph_ids is None else [str(graph_id) for graph_id in rule.graph_ids],
            )
            for rule in issuer.rules
        ],
        resource=state.resources.of(caller.tenant).uri,
        created_at=issuer.created_at,
        created_by=issuer.created_by,
        disabled_at=issuer.disabled_at,
    )
