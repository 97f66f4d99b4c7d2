"""Discovery documents: the authorization servers of a resource, and the features of this one."""

from collections.abc import Sequence
from typing import Any

from litestar import Controller, Response, get
from litestar.datastructures import State
from litestar.params import FromPath

from recollect.accounts.oauth.grants.model import ADVERTISED_SCOPES, DEFAULT_SCOPES
from recollect.accounts.oauth.issuers import service as trusted
from recollect.accounts.oauth.signing.model import ALGORITHM
from recollect.errors import NotFound
from recollect_gateway.callers.oauth_resources import WELL_KNOWN, Resource, Resources
from recollect_http.requests import AnyRequest

DISCOVERED = {"Cache-Control": "public, max-age=300"}
"""Headers of documents that are the same for everybody."""

AUTHORIZE, TOKEN, REGISTER = "/oauth/authorize", "/oauth/token", "/oauth/register"
REVOKE, INTROSPECT, JWKS = "/oauth/revoke", "/oauth/introspect", "/oauth/jwks.json"


class DiscoveryController(Controller):
    """Metadata documents of resources (RFC 9728) and of the authorization server (RFC 8414, OpenID Discovery)."""

    include_in_schema = False

    @get([WELL_KNOWN, f"{WELL_KNOWN}/mcp", f"{WELL_KNOWN}/mcp/x/{{toolsets:str}}"])
    async def protected_resource(self, request: AnyRequest, state: State) -> Response[dict[str, Any]]:
        """The metadata of `/mcp` by the very address that follows; at the root, too: some clients insert no paths."""
        return _document(_resource_metadata(state.resources, _described(request)))

    @get([f"{WELL_KNOWN}/t/{{tenant:str}}/mcp", f"{WELL_KNOWN}/t/{{tenant:str}}/mcp/x/{{toolsets:str}}"])
    async def tenant_resource(
        self, request: AnyRequest, state: State, tenant: FromPath[str]
    ) -> Response[dict[str, Any]]:
        """The metadata of a tenant's endpoint: alike for every possible name, whether or not there is such a tenant.

        Only the document of a tenant that trusts other issuers differs: it names them.
        """
        resource = _described(request)
        issuers = await trusted.trusted_addresses(state.databases, tenant)
        return _document(_resource_metadata(state.resources, resource, issuers))

    @get(["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
    async def authorization_server(self, state: State) -> Response[dict[str, Any]]:
        """The features of this server: one document, by either name."""
        return _document(server_metadata(state.resources.base, issuer_parameter=state.settings.oauth_issuer_parameter))


def server_metadata(issuer: str, *, issuer_parameter: bool) -> dict[str, Any]:
    """The metadata of an authorization server at this address."""
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "registration_endpoint": issuer + REGISTER,
        "revocation_endpoint": issuer + REVOKE,
        "introspection_endpoint": issuer + INTROSPECT,
        "jwks_uri": issuer + JWKS,
        "scopes_supported": list(ADVERTISED_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "introspection_endpoint_auth_methods_supported": ["none"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": issuer_parameter,
    }


def _described(request: AnyRequest) -> Resource:
    """The resource whose path follows in the address of its metadata. Raises NotFound for an impossible path."""
    path = request.scope["raw_path"].decode("latin-1").partition("?")[0].removeprefix(WELL_KNOWN)
    resources: Resources = request.app.state.resources
    found = resources.described(request.headers.get("host", ""), "/mcp" if path in ("", "/") else path)
    if found is None:
        raise NotFound("There is nothing at this address.")
    return found


def _resource_metadata(resources: Resources, resource: Resource, issuers: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "resource": resource.uri,
        "resource_name": "Recollect",
        "authorization_servers": [resources.base, *issuers],
        "scopes_supported": list(DEFAULT_SCOPES),
        "bearer_methods_supported": ["header"],
    }


def _document(content: dict[str, Any]) -> Response[dict[str, Any]]:
    return Response(content, headers=DISCOVERED)
