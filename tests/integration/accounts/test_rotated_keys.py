"""Issuers that rotate their key under its old name (`kid`): the new one holds, and forged tokens cost few requests."""

from collections.abc import AsyncIterator

import pytest
from joserfc.jwk import RSAKey

from recollect.accounts.token_issuers import PAUSE_SECONDS, IssuerFailed, Issuers, TokenRefused
from recollect.outbound.http_client import Outbound
from recollect.settings import Settings
from tests.integration.accounts.test_issuers import Clock, claims
from tests.support.identity_provider import IdentityProviderServer, identity_provider, signed_by_stranger


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


def rotate_under_the_same_name(idp: IdentityProviderServer) -> None:
    key = RSAKey.generate_key(2048, {"kid": idp.keys[0].kid}, private=True)
    idp.keys, idp.signs_with = [key], key


async def test_a_key_that_was_replaced_under_its_name_is_read_again(
    issuers: Issuers, idp: IdentityProviderServer, clock: Clock
) -> None:
    old = idp.signed({"sub": "ada"})
    await claims(issuers, idp, old)
    clock.now += PAUSE_SECONDS
    rotate_under_the_same_name(idp)
    assert await claims(issuers, idp, idp.signed({"sub": "grace"})) == {"sub": "grace"}
    assert idp.request_count("/jwks") == 2
    with pytest.raises(TokenRefused):
        await claims(issuers, idp, old)


@pytest.mark.proves("security: forged-signatures")
async def test_forged_tokens_cause_few_requests_and_disturb_nobody(
    issuers: Issuers, idp: IdentityProviderServer, clock: Clock
) -> None:
    token = idp.signed({"sub": "ada"})
    await claims(issuers, idp, token)
    for _ in range(2):
        clock.now += PAUSE_SECONDS
        for _ in range(20):
            with pytest.raises(TokenRefused):
                await claims(issuers, idp, signed_by_stranger(idp, token))
            assert await claims(issuers, idp, token) == {"sub": "ada"}
    assert idp.request_count("/jwks") == 3


async def test_an_issuer_that_is_away_refuses_forged_tokens_and_keeps_the_known_key(
    issuers: Issuers, idp: IdentityProviderServer, clock: Clock
) -> None:
    token = idp.signed({"sub": "ada"})
    await claims(issuers, idp, token)
    clock.now += PAUSE_SECONDS
    forged = signed_by_stranger(idp, token)
    idp.metadata = {"issuer": "https://issuer.example"}
    for _ in range(2):
        with pytest.raises((IssuerFailed, TokenRefused)):
            await claims(issuers, idp, forged)
        assert await claims(issuers, idp, token) == {"sub": "ada"}
