"""Settings of where the gateway listens, whom it believes, what a connection costs, and which addresses it asks."""

import re
from ipaddress import ip_network

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from recollect.public_url import read_public_url

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9.:\[\]_-]+")


class EdgeSettings(BaseSettings):
    """Where the gateway listens, whom it believes, what a connection costs, and which addresses it asks."""

    host: str = Field(default="127.0.0.1", description="Address that the gateway listens on.")
    port: int = Field(default=8787, ge=0, le=65535, description="Port that the gateway listens on.")
    public_url: str | None = Field(
        default=None,
        description="The address by which clients reach the gateway, such as `https://memory.example.com`: scheme, "
        "host and port, no path, since it needs a host of its own. Default: `http://`, `RECOLLECT_HOST` and "
        "`RECOLLECT_PORT`.",
    )
    allowed_hosts: list[str] = Field(
        default=["127.0.0.1:*", "localhost:*", "[::1]:*"],
        description='Host headers that are served beside that of the public address, as JSON (`["memory.internal"]`, '
        '`["localhost:*"]` with any port); `["*"]` serves all. Guards local servers against DNS rebinding.',
    )
    allowed_origins: list[str] = Field(
        default=[],
        description="Origins of web pages elsewhere that may ask from a browser, as JSON "
        '(`["https://app.example.com"]`); `["*"]` lets every page. They send keys and tokens on purpose: cookies are '
        "taken from our own pages alone.",
    )
    trusted_proxies: list[str] = Field(
        default=[],
        description="Proxies in front whose `X-Forwarded-For` tells who the client is, as JSON: addresses and networks "
        '(`["10.0.0.0/8"]`). Nobody else is believed.',
    )
    outbound_networks: list[str] = Field(
        default=[],
        description="Networks of your own that addresses which clients name may lead to nonetheless, as JSON "
        '(`["10.1.2.0/24"]`): where an identity provider stands, say. Loopback (`["127.0.0.0/8"]`) may then be reached '
        "on any port and without TLS, for tests and for one machine.",
    )
    outbound_refused_networks: list[str] = Field(
        default=[],
        description="Public addresses and networks that are yours and must not be reached so, as JSON. They go before "
        "`RECOLLECT_OUTBOUND_NETWORKS`. What is not of the public internet is refused without.",
    )
    outbound_ports: list[int] = Field(default=[443], description="Ports that such addresses may name, as JSON.")
    dns_servers: list[str] = Field(
        default=[],
        description='Name servers that are asked for the records of e-mail domains, as JSON (`["10.0.0.2:53"]`). '
        "Empty: those of the machine.",
    )
    outbound_seconds: float = Field(
        default=10.0, gt=0, le=60, description="How long an answer from such an address may take, all in all."
    )
    max_connections: int = Field(
        default=1000, ge=1, le=1_000_000, description="Connections that a gateway has at once, at most."
    )
    max_connections_per_address: int = Field(
        default=200,
        ge=1,
        le=1_000_000,
        description="Those of one client address (IPv6: of one /64), at most. Trusted proxies have no such bound.",
    )
    max_headers: int = Field(default=100, ge=10, le=10_000, description="Headers of one request, at most.")
    max_header_bytes: int = Field(
        default=32 * 1024, ge=1024, le=1024 * 1024, description="Bytes of them together with the address, at most."
    )
    header_seconds: float = Field(
        default=10.0, gt=0, le=3600, description="How long a client may take to send the headers of a request."
    )
    body_seconds: float = Field(
        default=20.0, gt=0, le=3600, description="How long a client may take for each 64 kB of a body, or its end."
    )
    answer_seconds: float = Field(
        default=60.0, gt=0, le=3600, description="How long a client may take nothing of an answer that is being sent."
    )
    keep_alive_seconds: int = Field(
        default=75,
        ge=1,
        le=3600,
        description="How long a connection is kept that asks nothing. Longer than the proxy in front keeps it: else a "
        "request may meet a connection that is being closed.",
    )
    drain_seconds: float = Field(
        default=5.0,
        ge=0,
        le=600,
        description="How long a gateway serves on after SIGTERM while its readiness fails and each answer ends its "
        "connection: longer than whatever stands in front takes to notice. SIGINT ends that at once.",
    )
    finish_seconds: int = Field(
        default=20,
        ge=1,
        le=600,
        description="How long calls under way may take to end after that, before they are cut off. Both together stay "
        "below what kills the process (30 s in Kubernetes, unless told otherwise).",
    )
    remember_callers_seconds: float = Field(
        default=5.0,
        ge=0,
        le=60,
        description="How long a gateway may serve a credential before it looks it up again, at most. What changes is "
        "told by Redis at once; while that is away every request is looked up. 0 looks every request up.",
    )
    failed_keys_per_minute: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="API keys of one client address that may fail in a minute. Beyond, only keys that held lately are "
        "looked up.",
    )

    @field_validator("trusted_proxies", "outbound_networks", "outbound_refused_networks")
    @classmethod
    def _networks(cls, networks: list[str]) -> list[str]:
        return [str(ip_network(network)) for network in networks]

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r} is no origin, such as https://app.example.com")
        return [origin.lower() for origin in origins]

    @field_validator("public_url")
    @classmethod
    def _canonical(cls, url: str | None) -> str | None:
        return None if url is None else read_public_url(url)
