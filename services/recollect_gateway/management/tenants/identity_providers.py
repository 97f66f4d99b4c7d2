"""/v1/identity-providers: the identity providers by which the tenant's people sign in."""

from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
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
from recollect.accounts.token_issuers import ALGORITHMS
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_gateway.web.providers import callback_of
from recollect_http.fields import CreatedAt, CreatedBy, DisabledAt
from recollect_http.openapi.routes import delete, get, patch, post
from recollect_http.pages import Page

ProviderName = Annotated[str, Meta(description="Name of the provider on the sign-in page", examples=["Acme Login"])]
Name = Annotated[ProviderName, Meta(min_length=1, max_length=MAX_NAME)]
Issuer = Annotated[
    str,
    Meta(
        description="Issuer identifier of the provider (OpenID Connect), without query or fragment",
        examples=["https://login.acme.example"],
    ),
]
ProviderClientId = Annotated[str, Meta(description="Id of Recollect's client at the provider", examples=["recollect"])]
ClientId = Annotated[ProviderClientId, Meta(min_length=1, max_length=MAX_CLIENT_ID)]
ClientSecret = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_SECRET,
        description="Secret of Recollect's client at the provider, which is stored encrypted and never returned",
    ),
]
Algorithm = Annotated[str, Meta(description=f"Algorithm that signs the provider's ID tokens: {', '.join(ALGORITHMS)}")]
ProviderInPath = Annotated[UUID, PathParameter(description="Id of the identity provider")]


class ProviderBody(Struct, frozen=True):
    """An identity provider without its client secret."""

    id: Annotated[str, Meta(description="Id of the identity provider, a UUID")]
    name: ProviderName
    issuer: Issuer
    client_id: ProviderClientId
    algorithm: Algorithm
    redirect_uri: Annotated[str, Meta(description="Redirect URI to register at the provider")]
    created_at: CreatedAt
    created_by: CreatedBy
    disabled_at: DisabledAt


class AddProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """An identity provider to set up, with the client that is registered there."""

    name: Name
    issuer: Annotated[Issuer, Meta(min_length=1, max_length=MAX_ISSUER)]
    client_id: ClientId
    client_secret: ClientSecret
    algorithm: Algorithm = DEFAULT_ALGORITHM


class ChangeProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of an identity provider to change. A field that is null or omitted stays."""

    name: Name | None = None
    client_id: ClientId | None = None
    client_secret: ClientSecret | None = None
    algorithm: Algorithm | None = None
    enabled: Annotated[bool | None, Meta(description="Whether people can sign in by the provider")] = None


class IdentityProviderController(Controller):
    """List, set up, change and delete identity providers."""

    path = "/identity-providers"
    tags = ("identity providers",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="All identity providers of the tenant.", summary="List identity providers")
    async def list_identity_providers(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State
    ) -> Page[ProviderBody]:
        """List the tenant's identity providers. There are few, so all are on one page."""
        async with db.transaction(request.user, read_only=True) as tx:
            return Page([_body(provider, state) for provider in await providers.list_providers(tx)], None)

    @post(
        "/",
        response_description="The identity provider that was set up, with the redirect URI to register there.",
        summary="Set up an identity provider",
        before_request=valid_body(AddProvider),
    )
    async def create_identity_provider(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[AddProvider]
    ) -> ProviderBody:
        """Set up an OpenID Connect provider. The response is 409 `provider_exists` if one with this issuer exists."""
        state.issuers.require_address(data.issuer, path="issuer")
        new = NewProvider(data.name, data.issuer, data.client_id, data.client_secret, data.algorithm)
        async with db.transaction(request.user) as tx:
            return _body(await providers.add_provider(tx, new, pepper=state.pepper), state)

    @patch(
        "/{provider_id:uuid}",
        response_description="The identity provider after the change.",
        summary="Update an identity provider",
        before_request=valid_body(ChangeProvider),
    )
    async def update_identity_provider(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        provider_id: ProviderInPath,
        data: JSONBody[ChangeProvider],
    ) -> ProviderBody:
        """Change, disable or enable an identity provider.

        Its issuer cannot be changed: set up another provider for another issuer.
        """
        change = ProviderChange(data.name, data.client_id, data.client_secret, data.algorithm, data.enabled)
        async with db.transaction(request.user) as tx:
            return _body(await providers.change_provider(tx, provider_id, change, pepper=state.pepper), state)

    @delete(
        "/{provider_id:uuid}",
        response_description="The identity provider was deleted.",
        summary="Delete an identity provider",
    )
    async def delete_identity_provider(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], provider_id: ProviderInPath
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
