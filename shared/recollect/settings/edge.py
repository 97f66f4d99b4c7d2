"""Settings of the gateway's address, trusted proxies, limits of connections, and outbound requests."""

import re
from ipaddress import ip_network

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from recollect.settings.addresses.public_url import bracketed, canonical_host, read_public_url
from recollect.settings.addresses.server import read_server
from recollect.settings.lists import Numbers, Texts

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9.:\[\]_-]+")


class EdgeSettings(BaseSettings):
    """The gateway's address, trusted proxies, limits of connections, and outbound requests."""

    host: str = Field(
        default="127.0.0.1",
        description="Address that the gateway listens on; `0.0.0.0` for all addresses of IPv4, `::` for all addresses.",
    )
    port: int = Field(default=8787, ge=0, le=65535, description="Port that the gateway listens on.")
    public_url: str | None = Field(
        default=None,
        description="Address by which clients reach the gateway, such as `https://memory.example.com`: scheme, host "
        "and port, without a path, since the gateway needs a host of its own. Unset: `http://` with `RECOLLECT_HOST` "
        "and `RECOLLECT_PORT`.",
    )
    allowed_hosts: Texts = Field(
        default=["127.0.0.1:*", "localhost:*", "[::1]:*"],
        description="Host headers that are served in addition to the host of the public address, as a JSON list or "
        "with commas (`memory.internal,10.0.0.5:8787`; `localhost:*` accepts any port); `*` serves all. This protects "
        "local servers against DNS rebinding. An entry with a scheme (`https://memory.example.org`) is an address by "
        "which OAuth clients may sign in, too; without one, they must use the public address, since a proxy may have "
        "set the header.",
    )
    allowed_origins: Texts = Field(
        default=[],
        description="Origins of other web pages that may send requests from a browser (CORS), as a JSON list "
        "or with commas (`https://app.example.com`); `*` allows every page. Such pages send keys and tokens "
        "themselves: cookies are accepted only from the gateway's own pages.",
    )
    trusted_proxies: Texts = Field(
        default=[],
        description="Addresses and networks of the proxies in front of the gateway, as a JSON list or with "
        "commas (`10.0.0.0/8`). Only their `X-Forwarded-For` header is used to find the address of the client; from "
        "anybody else it is ignored.",
    )
    outbound_networks: Texts = Field(
        default=[],
        description="Networks of your own that addresses named by clients may lead to although they are not public, "
        "as a JSON list or with commas (`10.1.2.0/24`), such as the network of your identity provider. If loopback is "
        "listed (`127.0.0.0/8`), it can be reached on any port and without TLS, for tests and single machines.",
    )
    outbound_refused_networks: Texts = Field(
        default=[],
        description="Public addresses and networks of your own that addresses named by clients must not lead to, as a "
        "JSON list or with commas. They take precedence over `RECOLLECT_OUTBOUND_NETWORKS`. Addresses outside the "
        "public internet need not be listed: they are refused anyway.",
    )
    outbound_ports: Numbers = Field(
        default=[443], description="Ports that addresses named by clients may have, as a JSON list or with commas."
    )
    dns_servers: Texts = Field(
        default=[],
        description="Name servers that are asked for the DNS records of e-mail domains, as a JSON list or with "
        "commas (`10.0.0.2:53,[2001:db8::53]:53`). Empty: the name servers of the machine.",
    )
    outbound_seconds: float = Field(
        default=10.0,
        gt=0,
        le=60,
        description="Maximum time, in seconds, for the whole answer from an address that a client named.",
    )
    max_connections: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Maximum number of open connections of a gateway. Further ones take the places of connections that "
        "wait for clients with more of them, or are answered 503 and closed.",
    )
    max_connections_per_address: int = Field(
        default=200,
        ge=1,
        le=1_000_000,
        description="Maximum number of open connections from one client address (IPv6: from one /64) to a gateway. "
        "Trusted proxies have no such limit.",
    )
    max_headers: int = Field(
        default=100,
        ge=10,
        le=10_000,
        description="Maximum number of headers in one request, trailers included. A request with more is answered 431.",
    )
    max_header_bytes: int = Field(
        default=32 * 1024,
        ge=1024,
        le=1024 * 1024,
        description="Maximum size of a request's headers and address together, in bytes. A larger request is answered "
        "431.",
    )
    header_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="Maximum time, in seconds, for a client to send the headers of a request. After that, the request "
        "is answered 408.",
    )
    body_seconds: float = Field(
        default=20.0,
        gt=0,
        le=3600,
        description="Maximum time, in seconds, for a client to send each 64 kB of a request body, or the rest of it. "
        "After that, the request is answered 408.",
    )
    answer_seconds: float = Field(
        default=60.0,
        gt=0,
        le=3600,
        description="Maximum time, in seconds, for which a client may read nothing of an answer that is being sent. "
        "After that, the connection is closed.",
    )
    keep_alive_seconds: int = Field(
        default=75,
        ge=1,
        le=3600,
        description="Time, in seconds, after which an idle connection is closed. Set it longer than the proxy in "
        "front keeps idle connections: otherwise a request may arrive on a connection that is being closed.",
    )
    drain_seconds: float = Field(
        default=5.0,
        ge=0,
        le=600,
        description="Time, in seconds, for which a gateway still serves requests after SIGTERM, while its readiness "
        "check fails and each answer closes its connection. Set it longer than the load balancer in front takes to "
        "notice. SIGINT ends this time at once.",
    )
    finish_seconds: int = Field(
        default=20,
        ge=1,
        le=600,
        description="Time, in seconds, that calls under way have to end after `RECOLLECT_DRAIN_SECONDS`, before they "
        "are cut off. Keep the sum of both below the time after which the process is killed (in Kubernetes 30 s by "
        "default).",
    )
    remember_callers_seconds: float = Field(
        default=5.0,
        ge=0,
        le=60,
        description="Maximum time, in seconds, for which a gateway serves a credential before it looks it up again. "
        "Redis reports changes at once; while it is unreachable, every request is looked up. 0 looks up every request.",
    )
    failed_keys_per_minute: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="Maximum number of made-up API keys, tokens and sessions from one client address in a minute. "
        "Those that were issued here and have expired, or were revoked, are not counted. After that, only keys that "
        "were valid recently are looked up, and others are answered 429. Keys of the operator API are counted apart.",
    )

    @field_validator("trusted_proxies", "outbound_networks", "outbound_refused_networks")
    @classmethod
    def _networks(cls, networks: list[str]) -> list[str]:
        return [str(ip_network(network)) for network in networks]

    @field_validator("dns_servers")
    @classmethod
    def _servers(cls, servers: list[str]) -> list[str]:
        for server in servers:
            read_server(server)
        return servers

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, hosts: list[str]) -> list[str]:
        return [read_public_url(host) if "://" in host else canonical_host(bracketed(host)) for host in hosts]

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r} is not an origin such as https://app.example.com")
        return [origin.lower() for origin in origins]

    @field_validator("public_url")
    @classmethod
    def _canonical(cls, url: str | None) -> str | None:
        return None if url is None else read_public_url(url)
