"""Trusted issuers: whose access tokens the organisation accepts, and which scopes they give."""

from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.oauth.issuers import service as trusted
from recollect.accounts.oauth.issuers.model import (
    DEFAULT_ALGORITHM,
    DEFAULT_CLAIM,
    DEFAULT_RULES,
    IssuerChange,
    NewIssuer,
    Rule,
)
from recollect.accounts.token_issuers import ALGORITHMS
from recollect.caller import Scope
from recollect.errors import InvalidInput, NotFound, RecollectError
from recollect_console.access import ADMIN
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.web.refusals import FormRefusal, refusal_of

PAGE = "settings/issuers"
FIELDS = ("name", "issuer", "algorithm", "claim", "rules")
DONE = {
    "trusted": "Its tokens are accepted from now on.",
    "off": "Its tokens are refused from now on.",
    "on": "Its tokens are accepted again.",
    "deleted": "It is no longer trusted.",
}


class TrustedIssuerPages(Controller):
    """Trust issuers, disable them, and let them go; for admins."""

    path = "/settings/issuers"
    opt = ADMIN

    @get("/")
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """All issuers: there are few."""
        return await _page(visit)

    @post("/")
    async def trust(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Trust an issuer."""
        try:
            new = _new(visit)
            visit.request.app.state.issuers.require_address(new.issuer, path="issuer")
            async with visit.changing_tenant() as tx:
                await trusted.trust_issuer(tx, new)
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go(PAGE, done="trusted")

    @post("/{issuer_id:uuid}/switch")
    async def switch(self, visit: NamedDependency[Visit], issuer_id: FromPath[UUID]) -> Redirect:
        """Accept its tokens, or refuse them."""
        is_on = visit.value("enabled") == "yes"
        async with visit.changing_tenant() as tx:
            await trusted.change_issuer(tx, issuer_id, IssuerChange(enabled=is_on))
        return visit.go(PAGE, done="on" if is_on else "off")

    @get("/{issuer_id:uuid}/delete")
    async def ask_to_delete(self, visit: NamedDependency[Visit], issuer_id: FromPath[UUID]) -> Response[str]:
        """What stops to work with an issuer."""
        async with visit.reading_tenant() as tx:
            found = [issuer for issuer in await trusted.list_issuers(tx) if issuer.id == issuer_id]
        if not found:
            raise NotFound("There is no such issuer any more.")
        return render(visit, "settings/delete_issuer.html", issuer=found[0])

    @post("/{issuer_id:uuid}/delete")
    async def delete(self, visit: NamedDependency[Visit], issuer_id: FromPath[UUID]) -> Redirect:
        """Trust an issuer no longer."""
        async with visit.changing_tenant() as tx:
            await trusted.delete_issuer(tx, issuer_id)
        return visit.go(PAGE, done="deleted")


async def _page(visit: Visit, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        found = await trusted.list_issuers(tx)
    context: dict[str, Any] = {
        "issuers": found,
        "graph_names": {graph.id: graph.name for graph in visit.graphs},
        "algorithms": [(name, name) for name in ALGORITHMS],
        "entered": {name: visit.value(name) for name in FIELDS},
        "audience": visit.request.app.state.resources.of(visit.caller.tenant).uri,
        "fault": refusal.text if refusal else "",
    }
    return render(visit, "settings/issuers.html", status=refusal.status if refusal else 200, done=DONE, **context)


def _new(visit: Visit) -> NewIssuer:
    if not visit.value("name") or not visit.value("issuer"):
        raise InvalidInput("Give a name and an issuer", path="issuer")
    return NewIssuer(
        visit.value("name"),
        visit.value("issuer"),
        visit.value("algorithm") or DEFAULT_ALGORITHM,
        visit.value("claim") or DEFAULT_CLAIM,
        _rules(visit.value("rules")),
    )


def _rules(entered: str) -> tuple[Rule, ...]:
    """Rules, one a line: a value of the claim, a colon, and scopes. None: the names of scopes give them."""
    lines = [line.strip() for line in entered.splitlines() if line.strip()]
    return tuple(_rule(line) for line in lines) or DEFAULT_RULES


def _rule(line: str) -> Rule:
    value, _, scopes = line.partition(" = ")
    try:
        given = tuple(dict.fromkeys(Scope(scope) for scope in scopes.split()))
    except ValueError:
        given = ()
    if not value.strip() or not given:
        raise InvalidInput(
            "A rule is a line such as: sales-agents = memory:read memory:write",
            path="rules",
        )
    return Rule(value.strip(), given)
