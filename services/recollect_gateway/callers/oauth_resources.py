"""Resources: what OAuth calls the MCP endpoints, named by their public addresses.

A token is for one of them. `{base}/mcp` takes the tenant from the token; `{base}/t/{tenant}/mcp` is a resource of its
own for each tenant. Nothing here reveals whether such a tenant exists.

Clients compare the address that they were given with the `resource` of its metadata, letter by letter. So each address
of an endpoint has metadata of its own: with a toolset (`/x/{toolset}`), with a slash at the end, and under each name of
the gateway. A token for any of them is for the endpoint. The authorization server has one name, `base`, by which all
this metadata names it: its issuer is compared letter by letter, too (RFC 8414, 3.3).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from recollect.accounts.oauth.grants.model import DEFAULT_SCOPES
from recollect.accounts.tenants.model import SLUG
from recollect.settings import Settings
from recollect_http.server.hosts import Origins

WELL_KNOWN = "/.well-known/oauth-protected-resource"
MAX_RESOURCE = 2_000
"""Characters of a resource that a client names."""

MAX_TOOLSETS = 200
"""Characters of the toolsets in an address that has metadata of its own."""

_PATH = re.compile(rf"(?:/t/(?P<tenant>{SLUG.pattern}))?/mcp(?:/x/[a-z0-9_,-]{{1,{MAX_TOOLSETS}}})?/?")


@dataclass(frozen=True, slots=True)
class Resource:
    """One MCP endpoint; `tenant` None where the token decides the tenant."""

    uri: str
    tenant: str | None


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one deployment. `base`: its public address, which is the issuer as well, without a slash."""

    origins: Origins

    @classmethod
    def of_settings(cls, settings: Settings) -> Self:
        """The resources of the gateway with these settings."""
        return cls(Origins.of(settings))

    @property
    def base(self) -> str:
        """The public address."""
        return self.origins.base

    @property
    def memories(self) -> str:
        """The routes under /v1 that read and write memories. No token names them: those for an MCP endpoint do."""
        return f"{self.base}/v1"

    def of(self, tenant: str | None) -> Resource:
        """The resource of a tenant, as tokens name it; None: the one of all tenants."""
        return Resource(f"{self.base}/mcp" if tenant is None else f"{self.base}/t/{tenant}/mcp", tenant)

    def find(self, uri: str) -> Resource | None:
        """The resource that a client names, by any of its addresses; None where it is not one of this server's.

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

    def same(self, uri: str, resource: str) -> bool:
        """Whether an address is one of this resource, as `of` names it."""
        found = self.find(uri)
        return found is not None and found.uri == resource

    def described(self, host: str, path: str) -> Resource | None:
        """The resource as a client names it that asked this host for this path; None where there is none."""
        match = _PATH.fullmatch(path)
        return Resource(self.origins.asked_at(host) + path, match["tenant"]) if match else None

    def asked(self, host: str, path: str) -> Resource:
        """The same, for a path that may have any text as its tenant or toolset: only possible ones are repeated."""
        endpoint = path.partition("/x/")[0]
        found = self.described(host, path) or self.described(host, endpoint)
        return found or Resource(f"{self.origins.asked_at(host)}/mcp", None)

    def challenge(
        self,
        resource: Resource,
        *,
        error: str | None = None,
        description: str | None = None,
        scopes: Iterable[str] = DEFAULT_SCOPES,
    ) -> str:
        """The WWW-Authenticate of a request to a resource (RFC 6750, 3; RFC 9728, 5.1)."""
        parameters = {"realm": "recollect", "error": error, "error_description": description}
        parameters["scope"] = " ".join(scopes)
        parameters["resource_metadata"] = metadata_uri(resource)
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value)

    def _path(self, uri: str) -> str | None:
        try:
            parts = urlsplit(uri) if len(uri) <= MAX_RESOURCE else None
            if parts is None or parts.query or parts.fragment:
                return None
        except ValueError:
            return None
        return parts.path if self.origins.find(f"{parts.scheme}://{parts.netloc}") else None


def metadata_uri(resource: Resource) -> str:
    """The address of a resource's metadata, which holds the resource's path (RFC 9728, 3.1)."""
    parts = urlsplit(resource.uri)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"
