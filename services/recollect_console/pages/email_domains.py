"""E-mail domains: people with an address at one of them join by themselves, once the DNS proves the claim."""

from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.email_domains import service as domains
from recollect.accounts.email_domains.model import JOINING_ROLES
from recollect.errors import NotFound, RecollectError
from recollect_console.access import ADMIN
from recollect_console.pages.people import role_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.web.refusals import FormRefusal, refusal_of

PAGE = "people/domains"
DONE = {
    "claimed": "The domain is claimed. Now set its record in the DNS, and verify it.",
    "verified": "The domain is verified: people with an address there can join.",
    "role": "The role is changed for people who join from now on.",
    "dropped": "The claim is deleted. People who joined by it stay members.",
}
ROLES = [(role.value, role.value) for role in JOINING_ROLES]


class EmailDomainPages(Controller):
    """Claim domains, verify them, and let them go."""

    path = "/people/domains"
    opt = ADMIN

    @get("/")
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """All domains that the organisation claims: there are few."""
        return await _page(visit)

    @post("/")
    async def claim(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Claim a domain."""
        try:
            async with visit.changing_tenant() as tx:
                await domains.claim_domain(tx, visit.value("domain"), role_of(visit))
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go(PAGE, done="claimed")

    @post("/{domain_id:uuid}/verify")
    async def verify(self, visit: NamedDependency[Visit], domain_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Look for the record in the DNS."""
        records = visit.request.app.state.text_records
        try:
            await domains.verify_domain(visit.db, records, visit.caller, domain_id)
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go(PAGE, done="verified")

    @post("/{domain_id:uuid}/role")
    async def change_role(self, visit: NamedDependency[Visit], domain_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Change the role of people who join."""
        try:
            async with visit.changing_tenant() as tx:
                if all(claim.id != domain_id for claim in await domains.list_domains(tx)):
                    raise NotFound("There is no such domain any more.")
                await domains.change_role(tx, domain_id, role_of(visit))
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go(PAGE, done="role")

    @post("/{domain_id:uuid}/delete")
    async def drop(self, visit: NamedDependency[Visit], domain_id: FromPath[UUID]) -> Redirect:
        """Delete a claim; it can be made again."""
        async with visit.changing_tenant() as tx:
            await domains.drop_domain(tx, domain_id)
        return visit.go(PAGE, done="dropped")


async def _page(visit: Visit, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        claims = await domains.list_domains(tx)
    context: dict[str, Any] = {
        "claims": claims,
        "roles": ROLES,
        "entered": {"domain": visit.value("domain"), "role": visit.value("role")},
        "fault": refusal.text if refusal else "",
    }
    return render(visit, "people/domains.html", status=refusal.status if refusal else 200, done=DONE, **context)
