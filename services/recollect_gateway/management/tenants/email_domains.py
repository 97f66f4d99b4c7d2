"""/v1/email-domains: domains whose addresses let people join the tenant by themselves."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
from msgspec import Meta, Struct

from recollect.accounts.email_domains import service as domains
from recollect.accounts.email_domains.model import MAX_DOMAIN, EmailDomain
from recollect.caller import Role
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import CreatedAt, CreatedBy
from recollect_http.openapi.routes import delete, get, patch, post
from recollect_http.pages import Page

Domain = Annotated[
    str,
    Meta(description="Domain of the e-mail addresses, without its subdomains", examples=["acme.example"]),
]
JoiningRole = Annotated[Role, Meta(description="Role of people who join by the domain: `member` or `reader`")]
DomainInPath = Annotated[UUID, PathParameter(description="Id of the claim to the domain")]


class DomainBody(Struct, frozen=True):
    """A claim to an e-mail domain."""

    id: Annotated[str, Meta(description="Id of the claim, a UUID")]
    domain: Domain
    role: JoiningRole
    record_name: Annotated[str, Meta(description="Name of the TXT record that proves the claim")]
    record_value: Annotated[str, Meta(description="Value of the TXT record that proves the claim")]
    created_at: CreatedAt
    created_by: CreatedBy
    verified_at: Annotated[
        datetime | None, Meta(description="Time at which the domain was verified; null: it is not, or no longer")
    ]
    checked_at: Annotated[
        datetime | None, Meta(description="Time at which the record was last found in the DNS; null: never")
    ]


class ClaimDomain(Struct, frozen=True, forbid_unknown_fields=True):
    """An e-mail domain to claim."""

    domain: Annotated[Domain, Meta(min_length=3, max_length=MAX_DOMAIN)]
    role: JoiningRole = Role.MEMBER


class DomainRole(Struct, frozen=True, forbid_unknown_fields=True):
    """The new role of people who join."""

    role: JoiningRole


class EmailDomainController(Controller):
    """List, claim, verify, change and delete domains."""

    path = "/email-domains"
    tags = ("email domains",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="All e-mail domains that the tenant claims.", summary="List e-mail domains")
    async def list_email_domains(self, request: CallerRequest, db: NamedDependency[TenantDatabase]) -> Page[DomainBody]:
        """List the e-mail domains that the tenant claims. There are few, so all are on one page."""
        async with db.transaction(request.user, read_only=True) as tx:
            return Page([_body(claim) for claim in await domains.list_domains(tx)], None)

    @post(
        "/",
        response_description="The claim, with the TXT record that proves it.",
        summary="Claim an e-mail domain",
        before_request=valid_body(ClaimDomain),
    )
    async def claim_email_domain(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], data: JSONBody[ClaimDomain]
    ) -> DomainBody:
        """Claim an e-mail domain. Returns the TXT record to set in the DNS.

        The claim has no effect until the domain is verified.
        """
        async with db.transaction(request.user) as tx:
            return _body(await domains.claim_domain(tx, data.domain, data.role))

    @post(
        "/{domain_id:uuid}/verify",
        response_description="The claim, which is verified now.",
        summary="Verify an e-mail domain",
        status_code=200,
    )
    async def verify_email_domain(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, domain_id: DomainInPath
    ) -> DomainBody:
        """Look up the claim's TXT record in the DNS and verify the domain.

        The response is 409 `domain_not_verified` if the record is not found.
        """
        return _body(await domains.verify_domain(db, state.text_records, request.user, domain_id))

    @patch(
        "/{domain_id:uuid}",
        response_description="The claim with the new role.",
        summary="Change the role of people who join",
        before_request=valid_body(DomainRole),
    )
    async def update_email_domain(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        domain_id: DomainInPath,
        data: JSONBody[DomainRole],
    ) -> DomainBody:
        """Change the role of people who join by this domain from now on: member or reader."""
        async with db.transaction(request.user) as tx:
            return _body(await domains.change_role(tx, domain_id, data.role))

    @delete("/{domain_id:uuid}", response_description="The claim was deleted.", summary="Delete an e-mail domain")
    async def delete_email_domain(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], domain_id: DomainInPath
    ) -> None:
        """Delete the claim to a domain. People who joined by it stay members."""
        async with db.transaction(request.user) as tx:
            await domains.drop_domain(tx, domain_id)


def _body(claim: EmailDomain) -> DomainBody:
    return DomainBody(
        id=str(claim.id),
        domain=claim.domain,
        role=claim.role,
        record_name=claim.record_name,
        record_value=claim.record_value,
        created_at=claim.created_at,
        created_by=claim.created_by,
        verified_at=claim.verified_at,
        checked_at=claim.checked_at,
    )
