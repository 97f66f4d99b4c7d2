"""Resources: what OAuth calls the MCP endpoints, named by their public addresses.

A token is for one of them. `{base}/mcp` takes the tenant from the token; `{base}/t/{tenant}/mcp` is a resource of its
own for each tenant. Nothing here reveals whether such a tenant exists.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from recollect.accounts.oauth.grants.model import DEFAULT_SCOPES
from recollect.accounts.tenants.model import SLUG

WELL_KNOWN = "/.well-known/oauth-protected-resource"
MAX_RESOURCE = 2_000
"""Characters of a resource that a client names."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One MCP endpoint; `tenant` None where the token decides the tenant."""

    uri: str
    tenant: str | None


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one deployment. `base`: its public address, which is the issuer as well, without a slash."""

    base: str

    def of(self, tenant: str | None) -> Resource:
        """The resource of a tenant; None: the one of all tenants."""
        return Resource(f"{self.base}/mcp" if tenant is None else f"{self.base}/t/{tenant}/mcp", tenant)

    def find(self, uri: str) -> Resource | None:
        """The resource that a client names; None where it is none of ours.

        Scheme and host may be in capitals, and a slash or a toolset (`/x/{toolset}`) may follow.
        """
        path = self._path(uri)
        if path is None:
            return None
        endpoint, _, _ = path.rstrip("/").partition("/x/")
        if endpoint == "/mcp":
            return self.of(None)
        tenant = endpoint.removeprefix("/t/").removesuffix("/mcp")
        return self.of(tenant) if endpoint == f"/t/{tenant}/mcp" and SLUG.fullmatch(tenant) else None

    def metadata_uri(self, tenant: str | None) -> str:
        """The address of a resource's metadata, which holds the resource's path (RFC 9728, 3.1)."""
        return f"{self.base}{WELL_KNOWN}{self.of(tenant).uri.removeprefix(self.base)}"

    def challenge(self, tenant: str | None, *, error: str | None = None, scopes: Iterable[str] = DEFAULT_SCOPES) -> str:
        """The WWW-Authenticate of a request to a resource (RFC 6750, 3; RFC 9728, 5.1)."""
        parameters = {"realm": "recollect", "error": error, "scope": " ".join(scopes)}
        # The tenant in an address may be any text: only one that can be a slug is repeated.
        slug = tenant if tenant is None or SLUG.fullmatch(tenant) else None
        parameters["resource_metadata"] = self.metadata_uri(slug)
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value)

    def _path(self, uri: str) -> str | None:
        try:
            parts = urlsplit(uri) if len(uri) <= MAX_RESOURCE else None
            if parts is None or parts.query or parts.fragment:
                return None
            origin = f"{parts.scheme}://{parts.netloc}".lower()
        except ValueError:
            return None
        return parts.path if origin == self.base else None
