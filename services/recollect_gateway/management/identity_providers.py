"""/v1/identity-providers: the identity providers by which the tenant's people sign in."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Request, delete, get, patch, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from recollect.accounts.identity_providers import service as providers
from recollect.accounts.identity_providers.model import (
    DEFAULT_ALGORITHM,
    MAX_CLIENT_ID,
    MAX_ISSUER,
    MAX_NAME,
    MAX_SECRET,
    IdentityProvider,
    NewProvider,
    ProviderChange,
)
from recollect.caller import Caller
from recollect.platform.db import Database
from recollect_gateway.errors import ACT_RESPONSES, RESPONSES
from recollect_gateway.guards import BY_SCOPE, requires_admin
from recollect_gateway.management.pages import Page
from recollect_gateway.validation import valid_body
from recollect_gateway.web.providers import callback_of

AnyRequest = Request[Caller, Any, State]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
ClientId = Annotated[str, Meta(min_length=1, max_length=MAX_CLIENT_ID)]
ClientSecret = Annotated[str, Meta(min_length=1, max_length=MAX_SECRET)]


class ProviderBody(Struct, frozen=True):
    """An identity provider, without its secret. `redirect_uri` is the URI to register with the provider."""

    id: str
    name: str
    issuer: str
    client_id: str
    algorithm: str
    redirect_uri: str
    created_at: datetime
    created_by: str
    disabled_at: datetime | None


class AddProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider to set up: its issuer, and the client that is registered there.

    The secret is stored encrypted and never returned. `algorithm`: the asymmetric algorithm that signs its ID tokens.
    """

    name: Name
    issuer: Annotated[str, Meta(min_length=1, max_length=MAX_ISSUER)]
    client_id: ClientId
    client_secret: ClientSecret
    algorithm: str = DEFAULT_ALGORITHM


class ChangeProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields to change; null leaves a field as it is. With `enabled` false, nobody can sign in by the provider."""

    name: Name | None = None
    client_id: ClientId | None = None
    client_secret: ClientSecret | None = None
    algorithm: str | None = None
    enabled: bool | None = None


class IdentityProviderController(Controller):
    """List, set up, change and delete identity providers."""

    path = "/identity-providers"
    tags = ("identity providers",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", responses=RESPONSES, summary="List identity providers")
    async def list_providers(
        self, request: AnyRequest, db: NamedDependency[Database], state: State
    ) -> Page[ProviderBody]:
        """List the tenant's identity providers. There are few, so all are on one page."""
        async with db.transaction(request.user, read_only=True) as tx:
            return Page([_body(provider, state) for provider in await providers.list_providers(tx)], None)

    @post("/", responses=ACT_RESPONSES, summary="Set up an identity provider", before_request=valid_body(AddProvider))
    async def add_provider(
        self, request: AnyRequest, db: NamedDependency[Database], state: State, data: JSONBody[AddProvider]
    ) -> ProviderBody:
        """Set up an OpenID Connect provider. The response is 409 `provider_exists` if one with this issuer exists."""
        state.issuers.require_address(data.issuer, path="issuer")
        new = NewProvider(data.name, data.issuer, data.client_id, data.client_secret, data.algorithm)
        async with db.transaction(request.user) as tx:
            return _body(await providers.add_provider(tx, new, pepper=state.pepper), state)

    @patch(
        "/{provider_id:uuid}",
        responses=ACT_RESPONSES,
        summary="Update an identity provider",
        before_request=valid_body(ChangeProvider),
    )
    async def change_provider(
        self,
        request: AnyRequest,
        db: NamedDependency[Database],
        state: State,
        provider_id: FromPath[UUID],
        data: JSONBody[ChangeProvider],
    ) -> ProviderBody:
        """Change, disable or enable an identity provider.

        Its issuer cannot be changed: set up another provider for another issuer.
        """
        change = ProviderChange(data.name, data.client_id, data.client_secret, data.algorithm, data.enabled)
        async with db.transaction(request.user) as tx:
            return _body(await providers.change_provider(tx, provider_id, change, pepper=state.pepper), state)

    @delete("/{provider_id:uuid}", responses=ACT_RESPONSES, summary="Delete an identity provider")
    async def delete_provider(
        self, request: AnyRequest, db: NamedDependency[Database], provider_id: FromPath[UUID]
    ) -> None:
        """Delete an identity provider. Its sessions end, and nobody can sign in by it. Members stay members."""
        async with db.transaction(request.user) as tx:
            await providers.delete_provider(tx, provider_id)


def _body(provider: IdentityProvider, state: State) -> ProviderBody:
    return ProviderBody(
        id=str(provider.id),
        name=provider.name,
        issuer=provider.issuer,
        client_id=provider.client_id,
        algorithm=provider.algorithm,
        redirect_uri=callback_of(state.settings.base_url, provider.id),
        created_at=provider.created_at,
        created_by=provider.created_by,
        disabled_at=provider.disabled_at,
    )
