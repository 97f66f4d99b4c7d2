"""Issuers of tokens that a tenant chose: the documents that they publish, and the verification of their tokens.

An issuer's addresses are chosen by others, so they are requested by `recollect.outbound`. The documents are cached
for a while, for each tenant by itself: no tenant learns from another's requests. A token that names an unknown key, or
whose signature does not fit the key that it names, has them read anew, since issuers rotate their keys, and some keep
the name of the key; but only so often, however many such tokens come.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import structlog
from cachetools import TTLCache
from joserfc import jws, jwt
from joserfc.errors import BadSignatureError, JoseError
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from recollect.errors import InvalidInput
from recollect.outbound.http_client import Outbound, OutboundFailed

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Algorithms, of which a configuration names one: all asymmetric, so that a key that verifies cannot sign."""

CACHE_SECONDS = 600.0
"""How long an issuer's documents are cached."""

PAUSE_SECONDS = 30.0
"""The shortest time between two requests to an issuer for an unknown key, or after it did not answer."""

MAX_CACHED_ISSUERS = 1_000
MAX_KEYS = 50
"""Keys of one issuer that are read; further ones are ignored."""

MAX_TOKEN = 16 * 1024
"""Characters of a token."""

LEEWAY_SECONDS = 60
"""By how much an issuer's clock may differ from this machine's."""

_MIN_RSA_BITS = 2048
_MAX_MEMBER = 2_000
_MEMBERS = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y")}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_WELL_KNOWN = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")

T = TypeVar("T")

log = structlog.get_logger(__name__)

PublicKey = RSAKey | ECKey
_Key = tuple[UUID, str]


class IssuerFailed(Exception):
    """An issuer does not answer, or its documents are wrong; the message is for the person who configured it."""


class TokenRefused(Exception):
    """A token is not of this issuer, or not valid. The message is for the log, not for the bearer of the token."""


class KeyDoesNotFit(TokenRefused):
    """No key that we know of this issuer signed the token; the issuer may have published another since."""


class IssuerMetadata(Struct, frozen=True):
    """An issuer's metadata (OpenID Discovery; RFC 8414): the part of it that we use."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None


class _KeySet(Struct, frozen=True):
    keys: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Issuer:
    """The documents that an issuer publishes."""

    metadata: IssuerMetadata
    keys: tuple[dict[str, Any], ...]

    def key(self, kid: str | None, algorithm: str) -> PublicKey | None:
        """The key that a token names; the only usable one for a token without a `kid`. None where there is none."""
        matches = [key for key in self.keys if _is_usable(key, algorithm) and kid in (None, key.get("kid"))]
        return _imported(matches[0]) if len(matches) == 1 else None


class Issuers:
    """Requests the documents of issuers, and caches them. A process has one."""

    def __init__(self, outbound: Outbound, clock: Callable[[], float] = time.monotonic) -> None:
        self._outbound = outbound
        self._cached: TTLCache[_Key, Issuer] = TTLCache(MAX_CACHED_ISSUERS, CACHE_SECONDS, timer=clock)
        self._recently_asked: TTLCache[_Key, bool] = TTLCache(MAX_CACHED_ISSUERS, PAUSE_SECONDS, timer=clock)
        self._pending: dict[_Key, asyncio.Task[Issuer]] = {}

    async def issuer(self, tenant_id: UUID, address: str) -> Issuer:
        """The documents of the issuer at this address, for a tenant that chose it. Raises IssuerFailed."""
        return self._cached.get((tenant_id, address)) or await self._read(tenant_id, address)

    async def verified(self, tenant_id: UUID, address: str, token: str, algorithm: str) -> jwt.Token:
        """The token, after its signature was verified by a key of this issuer and this algorithm.

        The caller has to check its claims. Raises TokenRefused, or IssuerFailed.
        """
        kid, known = _kid(token, algorithm), self._cached.get((tenant_id, address))
        key = known.key(kid, algorithm) if known is not None else None
        if key is not None:
            try:
                return _decoded_token(token, key, algorithm)
            except KeyDoesNotFit as refused:
                if not self._may_ask(tenant_id, address):
                    raise
                log.info("keys of an issuer are read again", reason=str(refused))
        return _decoded_token(token, (await self._read(tenant_id, address)).key(kid, algorithm), algorithm)

    def _may_ask(self, tenant_id: UUID, address: str) -> bool:
        """Whether the issuer's documents can be requested now, or are being requested."""
        key = tenant_id, address
        return key in self._pending or key not in self._recently_asked

    async def _read(self, tenant_id: UUID, address: str) -> Issuer:
        """Request the issuer's documents, once for all calls that need them at the same time."""
        key = tenant_id, address
        task = self._pending.get(key)
        if task is None:
            if key in self._recently_asked:
                raise IssuerFailed("It was asked a moment ago. It is not asked again so soon.")
            self._recently_asked[key] = True
            task = self._pending[key] = asyncio.create_task(self._fetch(tenant_id, address))
            task.add_done_callback(lambda done: self._store_result(key, done))
        return await asyncio.shield(task)

    def _store_result(self, key: _Key, done: "asyncio.Task[Issuer]") -> None:
        del self._pending[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._cached[key] = done.result()

    async def _fetch(self, tenant_id: UUID, address: str) -> Issuer:
        metadata = await self._metadata(tenant_id, address)
        keys = decoded(await self._get(tenant_id, metadata.jwks_uri), _KeySet)
        if keys is None:
            raise IssuerFailed("Its jwks_uri returns no set of keys.")
        return Issuer(metadata, tuple(keys.keys[:MAX_KEYS]))

    async def _metadata(self, tenant_id: UUID, address: str) -> IssuerMetadata:
        for well_known in _WELL_KNOWN:
            url = _metadata_url(address, well_known)
            metadata = decoded(await self._get(tenant_id, url), IssuerMetadata)
            if metadata is None:
                continue
            if metadata.issuer != address:  # Otherwise one issuer could speak for another (OpenID Discovery, 4.3).
                raise IssuerFailed("Its metadata name another address than the one that is configured.")
            self._require_addresses(metadata)
            return metadata
        raise IssuerFailed("It has no metadata at its well-known addresses.")

    async def _get(self, tenant_id: UUID, url: str) -> bytes:
        """The body of the answer; empty for any status but 200."""
        try:
            answer = await self._outbound.get(url, on_behalf_of=tenant_id)
        except OutboundFailed as error:
            raise IssuerFailed(f"{error}.") from None
        return answer.body if answer.status == 200 else b""

    def _require_addresses(self, metadata: IssuerMetadata) -> None:
        for name in ("jwks_uri", "authorization_endpoint", "token_endpoint", "userinfo_endpoint"):
            url = getattr(metadata, name)
            try:
                if url is not None:
                    self.require_address(url, path=name)
            except InvalidInput as error:
                raise IssuerFailed(f"Its metadata name an address that is not accepted: {error}.") from None

    def require_address(self, url: str, *, path: str) -> None:
        """Raise InvalidInput at `path` for a URL whose form no address of an issuer may have."""
        if not url.startswith(("https://", "http://")) or not url.isascii() or not url.isprintable():
            raise InvalidInput("An address must begin with https://", path=path)
        self._outbound.require_address(url, path=path)


def _decoded_token(token: str, key: PublicKey | None, algorithm: str) -> jwt.Token:
    """The token, if this key signed it. Raises TokenRefused."""
    if key is None:
        raise KeyDoesNotFit("no key of its issuer matches")
    try:
        return jwt.decode(token, key, registry=JWSRegistry(algorithms=[algorithm], strict_check_header=False))
    except BadSignatureError as error:
        raise KeyDoesNotFit(f"its signature: {error}") from None
    except (JoseError, ValueError) as error:
        raise TokenRefused(f"its signature: {error}") from None


def _metadata_url(address: str, well_known: str) -> str:
    """The URL of an issuer's metadata: OpenID appends the well-known path, RFC 8414 inserts it before the issuer's."""
    if well_known.endswith("openid-configuration"):
        return address.rstrip("/") + well_known
    scheme, _, rest = address.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}{well_known}" + (f"/{path.rstrip('/')}" if path.strip("/") else "")


def decoded(body: bytes, type_: type[T]) -> T | None:
    """The answer of an issuer, as this type; None if it is no such JSON."""
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _kid(token: str, algorithm: str) -> str | None:
    """The id of the key by which a token claims to be signed; raises TokenRefused for one that we do not accept."""
    if len(token) > MAX_TOKEN or not token.isascii():
        raise TokenRefused("it is too long, or not a token")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError) as error:
        raise TokenRefused(f"it is not a token: {error}") from None
    if header.get("alg") != algorithm:
        raise TokenRefused("it is not signed with the algorithm that is configured")
    kid = header.get("kid")
    if kid is not None and not isinstance(kid, str):
        raise TokenRefused("it names no key")
    return kid


def _is_usable(key: dict[str, Any], algorithm: str) -> bool:
    """Whether a published key claims to verify this algorithm."""
    if key.get("use", "sig") != "sig" or key.get("alg", algorithm) != algorithm:
        return False
    if algorithm.startswith("ES"):
        return key.get("kty") == "EC" and key.get("crv") == _CURVES[algorithm]
    return key.get("kty") == "RSA"


def _imported(key: dict[str, Any]) -> PublicKey | None:
    """The public part of a published key; None for a malformed or weak one."""
    members = _MEMBERS[key["kty"]]
    public: dict[str, Any] = {name: key[name] for name in members if isinstance(key.get(name), str)}
    if len(public) < len(members) or max(map(len, public.values())) > _MAX_MEMBER:
        return None
    try:
        if key["kty"] == "EC":
            return ECKey.import_key(public)
        imported = RSAKey.import_key(public)
        return imported if imported.public_key.key_size >= _MIN_RSA_BITS else None
    except (JoseError, ValueError, KeyError, TypeError) as error:
        log.info("invalid key of an issuer", reason=str(error))
        return None
