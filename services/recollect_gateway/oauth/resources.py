"""Resources: the MCP endpoints as OAuth names them, by their addresses under the public one.

A token is for one of them. `{base}/mcp` takes the tenant from the token; `{base}/t/{tenant}/mcp` is a resource of its
own for each tenant. Whether there is such a tenant, no address here tells.
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
    """One MCP endpoint; `tenant` None where the token says whose it is."""

    uri: str
    tenant: str | None


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one deployment. `base`: its public address, which is the issuer as well, without a slash."""

    base: str

    def of(self, tenant: str | None) -> Resource:
        """That of a tenant, or the one of all."""
        return Resource(f"{self.base}/mcp" if tenant is None else f"{self.base}/t/{tenant}/mcp", tenant)

    def named(self, uri: str) -> Resource | None:
        """The resource that a client names; None for what is none of ours.

        Scheme and host may be in capitals, a slash or a toolset (`/x/{toolset}`) may follow.
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
        """Where the metadata of a resource is: its path is inserted (RFC 9728, 3.1)."""
        return f"{self.base}{WELL_KNOWN}{self.of(tenant).uri.removeprefix(self.base)}"

    def challenge(self, tenant: str | None, *, error: str | None = None, scopes: Iterable[str] = DEFAULT_SCOPES) -> str:
        """The WWW-Authenticate of a request to a resource (RFC 6750, 3; RFC 9728, 5.1)."""
        said = {"realm": "recollect", "error": error, "scope": " ".join(scopes)}
        # A tenant in the address may be anything: only what can be one is repeated.
        known = tenant if tenant is None or SLUG.fullmatch(tenant) else None
        said["resource_metadata"] = self.metadata_uri(known)
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in said.items() if value)

    def _path(self, uri: str) -> str | None:
        try:
            parts = urlsplit(uri) if len(uri) <= MAX_RESOURCE else None
            if parts is None or parts.query or parts.fragment:
                return None
            origin = f"{parts.scheme}://{parts.netloc}".lower()
        except ValueError:
            return None
        return parts.path if origin == self.base else None
