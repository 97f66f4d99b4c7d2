"""Metadata and keys of issuers: cached and fetched again, from an issuer on loopback that may lie."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from joserfc.jwk import OctKey

from recollect.accounts.token_issuers import CACHE_SECONDS, PAUSE_SECONDS, IssuerFailed, Issuers, TokenRefused
from recollect.errors import InvalidInput
from recollect.outbound.http_client import Outbound
from recollect.settings import Settings
from tests.support.identity_provider import (
    Forge,
    IdentityProviderServer,
    elliptic_key,
    identity_provider,
    signed_by_public_key,
    signed_by_stranger,
    unsigned,
)

TENANT = uuid4()


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def idp() -> AsyncIterator[IdentityProviderServer]:
    async with identity_provider() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuers(clock: Clock) -> Issuers:
    return Issuers(Outbound(Settings(outbound_networks=["127.0.0.0/8"])), clock)


async def claims(issuers: Issuers, idp: IdentityProviderServer, token: str, algorithm: str = "RS256") -> object:
    return (await issuers.verified(TENANT, idp.issuer, token, algorithm)).claims


class TestKeys:
    async def test_keys_are_cached_and_fetched_again_after_a_while(
        self, issuers: Issuers, idp: IdentityProviderServer, clock: Clock
    ) -> None:
        token = idp.signed({"sub": "ada"})
        assert await asyncio.gather(*(claims(issuers, idp, token) for _ in range(20))) == [{"sub": "ada"}] * 20
        assert idp.request_count("/jwks") == 1
        clock.now += CACHE_SECONDS
        await claims(issuers, idp, token)
        assert idp.request_count("/jwks") == 2

    async def test_an_unknown_key_is_fetched_and_a_withdrawn_one_is_refused(
        self, issuers: Issuers, idp: IdentityProviderServer, clock: Clock
    ) -> None:
        old = idp.signed({"sub": "ada"})
        await claims(issuers, idp, old)
        clock.now += PAUSE_SECONDS
        idp.rotate()
        assert await claims(issuers, idp, idp.signed({"sub": "grace"})) == {"sub": "grace"}
        clock.now += PAUSE_SECONDS
        with pytest.raises(TokenRefused):
            await claims(issuers, idp, old)

    @pytest.mark.proves("security: provider-key-requests")
    async def test_tokens_with_invented_keys_cause_few_requests(
        self, issuers: Issuers, idp: IdentityProviderServer, clock: Clock
    ) -> None:
        token = idp.signed({"sub": "ada"})
        await claims(issuers, idp, token)
        clock.now += PAUSE_SECONDS
        for number in range(50):
            with pytest.raises((TokenRefused, IssuerFailed)):
                await claims(issuers, idp, idp.signed({}, kid=f"made up {number}"))
        assert idp.request_count("/jwks") == 2
        assert await claims(issuers, idp, token) == {"sub": "ada"}, "those that are known go on"

    async def test_an_issuer_that_is_away_is_not_asked_again_at_once(
        self, issuers: Issuers, idp: IdentityProviderServer, clock: Clock
    ) -> None:
        idp.metadata = {"issuer": "https://issuer.example"}
        for _ in range(3):
            with pytest.raises(IssuerFailed):
                await issuers.issuer(TENANT, idp.issuer)
        assert idp.request_count("/.well-known/openid-configuration") == 1
        idp.metadata = {}
        clock.now += PAUSE_SECONDS
        assert (await issuers.issuer(TENANT, idp.issuer)).metadata.issuer == idp.issuer

    async def test_a_token_without_a_key_id_is_verified_by_the_only_key(
        self, issuers: Issuers, idp: IdentityProviderServer, clock: Clock
    ) -> None:
        token = idp.signed({"sub": "ada"}, kid=None)
        idp.keys = [*idp.keys, elliptic_key()]
        assert await claims(issuers, idp, token) == {"sub": "ada"}, "the other one is of another kind"
        clock.now += CACHE_SECONDS
        published = idp.keys[0]
        idp.rotate()
        idp.keys = [*idp.keys, published]
        with pytest.raises((TokenRefused, IssuerFailed)):
            await claims(issuers, idp, token)


class TestSignatures:
    @pytest.mark.parametrize("forge", [unsigned, signed_by_public_key, signed_by_stranger])
    async def test_a_forged_token_is_refused(self, issuers: Issuers, idp: IdentityProviderServer, forge: Forge) -> None:
        with pytest.raises(TokenRefused):
            await claims(issuers, idp, forge(idp, idp.signed({"sub": "ada"})))

    @pytest.mark.proves("security: issuer-signatures")
    async def test_only_the_configured_algorithm_is_accepted(
        self, issuers: Issuers, idp: IdentityProviderServer
    ) -> None:
        key = elliptic_key()
        idp.keys, idp.signs_with, idp.algorithm = [*idp.keys, key], key, "ES256"
        token = idp.signed({"sub": "ada"})
        assert await claims(issuers, idp, token, "ES256") == {"sub": "ada"}
        for other in ("RS256", "PS256", "ES384"):
            with pytest.raises(TokenRefused):
                await claims(issuers, idp, token, other)

    async def test_unsuitable_keys_verify_nothing(self, issuers: Issuers, idp: IdentityProviderServer) -> None:
        """A published secret, an incomplete key or one for encryption is ignored."""

        class Published:
            def __init__(self, key: dict[str, str]) -> None:
                self.key = key

            def as_dict(self, *, private: bool) -> dict[str, str]:
                return self.key

        right = idp.keys[0].as_dict(private=False)
        wrong = [{**right, "n": 7}, {**right, "n": "!"}, {**right, "alg": "RS512"}, {"kty": "RSA", "kid": "rsa-0"}]
        secret = OctKey.generate_key(256, {"kid": "rsa-0"}).as_dict(private=True)
        token = idp.signed({"sub": "ada"})
        for key in (*wrong, secret):
            idp.keys = [Published(key)]
            with pytest.raises((TokenRefused, IssuerFailed)):
                await claims(Issuers(Outbound(Settings(outbound_networks=["127.0.0.0/8"]))), idp, token)

    @pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "e30.e30.e30", "é.e30.", "a" * 20_000])
    async def test_an_invalid_token_is_refused_without_a_request(
        self, issuers: Issuers, idp: IdentityProviderServer, token: str
    ) -> None:
        with pytest.raises(TokenRefused):
            await claims(issuers, idp, token)
        assert idp.server.connections == 0


@pytest.mark.parametrize(
    "address",
    ["ftp://x.example", "https://", "//x", "javascript:alert(1)", "https://x.example/\n", "https://é.example"],
)
def test_an_invalid_issuer_address_is_refused(issuers: Issuers, address: str) -> None:
    with pytest.raises(InvalidInput):
        issuers.require_address(address, path="issuer")
