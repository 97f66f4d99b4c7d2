"""Identity providers: where the organisation's people sign in with the accounts that they have there."""

from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.identity_providers import service as providers
from recollect.accounts.identity_providers.model import DEFAULT_ALGORITHM, IdentityProvider, NewProvider, ProviderChange
from recollect.accounts.token_issuers import ALGORITHMS
from recollect.errors import InvalidInput, NotFound, RecollectError
from recollect.postgres.transactions import Transaction
from recollect_console.access import ADMIN
from recollect_console.refusals import unchanged
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.web.providers import callback_of
from recollect_http.web.refusals import FormRefusal, mark_of, refusal_of

PAGE = "people/providers"
FIELDS = ("name", "issuer", "client_id", "algorithm")
"""The fields that a form shows again. A secret is entered anew."""

DONE = {
    "added": "It is set up. Register the redirect address there, and try to sign in.",
    "saved": "It is changed.",
    "off": "Nobody can sign in by it now, and its sessions have ended.",
    "on": "People can sign in by it again.",
    "deleted": "It is deleted. Its sessions have ended; members stay members.",
}


class IdentityProviderPages(Controller):
    """Set up, change, disable and delete identity providers."""

    path = "/people/providers"
    opt = ADMIN

    @get("/")
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """All providers: there are few."""
        return await _page(visit)

    @post("/")
    async def add(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Set up a provider."""
        state = visit.request.app.state
        try:
            new = _new(visit)
            state.issuers.require_address(new.issuer, path="issuer")
            async with visit.changing_tenant() as tx:
                await providers.add_provider(tx, new, pepper=state.pepper)
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go(PAGE, done="added")

    @get("/{provider_id:uuid}")
    async def edit(self, visit: NamedDependency[Visit], provider_id: FromPath[UUID]) -> Response[str]:
        """The form to change a provider."""
        return await _form(visit, provider_id)

    @post("/{provider_id:uuid}")
    async def save(self, visit: NamedDependency[Visit], provider_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Change a provider, where it is still as it was shown."""
        change = ProviderChange(
            visit.value("name") or None,
            visit.value("client_id") or None,
            visit.value("client_secret") or None,
            visit.value("algorithm") or None,
        )
        pepper = visit.request.app.state.pepper
        try:
            async with visit.changing_tenant() as tx:
                await providers.change_provider(tx, provider_id, change, pepper=pepper, check=unchanged(visit))
        except RecollectError as error:
            return await _form(visit, provider_id, refusal_of(error))
        return visit.go(PAGE, done="saved")

    @post("/{provider_id:uuid}/switch")
    async def switch(self, visit: NamedDependency[Visit], provider_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Let people sign in by it, or not."""
        is_on = visit.value("enabled") == "yes"
        try:
            async with visit.changing_tenant() as tx:
                change = ProviderChange(enabled=is_on)
                await providers.change_provider(tx, provider_id, change, pepper=visit.request.app.state.pepper)
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go(PAGE, done="on" if is_on else "off")

    @get("/{provider_id:uuid}/delete")
    async def ask_to_delete(self, visit: NamedDependency[Visit], provider_id: FromPath[UUID]) -> Response[str]:
        """What ends with a provider."""
        async with visit.reading_tenant() as tx:
            provider = await _provider(tx, provider_id)
        return render(visit, "people/delete_provider.html", provider=provider)

    @post("/{provider_id:uuid}/delete")
    async def delete(self, visit: NamedDependency[Visit], provider_id: FromPath[UUID]) -> Redirect:
        """Delete a provider."""
        async with visit.changing_tenant() as tx:
            await providers.delete_provider(tx, provider_id)
        return visit.go(PAGE, done="deleted")


async def _provider(tx: Transaction, provider_id: UUID) -> IdentityProvider:
    for provider in await providers.list_providers(tx):
        if provider.id == provider_id:
            return provider
    raise NotFound("There is no such identity provider any more.")


def _new(visit: Visit) -> NewProvider:
    entered = {name: visit.value(name) for name in ("name", "issuer", "client_id", "client_secret")}
    for name, value in entered.items():
        if not value:
            raise InvalidInput(f"Fill in all fields: {name.replace('_', ' ')} is empty", path=name)
    return NewProvider(**entered, algorithm=visit.value("algorithm") or DEFAULT_ALGORITHM)


async def _page(visit: Visit, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        found = await providers.list_providers(tx)
    base_url = visit.request.app.state.settings.base_url
    context: dict[str, Any] = {
        "providers": [(provider, callback_of(base_url, provider.id)) for provider in found],
        "algorithms": [(name, name) for name in ALGORITHMS],
        "entered": {name: visit.value(name) for name in FIELDS},
        "fault": refusal.text if refusal else "",
    }
    return render(visit, "people/providers.html", status=refusal.status if refusal else 200, done=DONE, **context)


async def _form(visit: Visit, provider_id: UUID, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        provider = await _provider(tx, provider_id)
    entered: dict[str, str] = {name: visit.value(name) if refusal else getattr(provider, name) for name in FIELDS}
    return render(
        visit,
        "people/provider.html",
        status=refusal.status if refusal else 200,
        provider=provider,
        algorithms=[(name, name) for name in ALGORITHMS],
        entered=entered,
        seen=mark_of(provider),
        refusal=refusal,
    )
