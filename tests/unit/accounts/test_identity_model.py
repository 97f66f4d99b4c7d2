"""The format of keys, their checksum and their hashes."""

import re
import string
from zlib import crc32

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.accounts.identity.model import (
    ALPHABET,
    KIND_SCOPES,
    generate_secret,
    hash_secret,
    hint_of,
    is_well_formed,
)

KINDS = sorted(KIND_SCOPES)
SECRETS = st.builds(lambda kind, _: generate_secret(kind), st.sampled_from(KINDS), st.integers())


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_contains_its_kind_and_is_unique(kind: str) -> None:
    secrets = {generate_secret(kind) for _ in range(100)}
    assert len(secrets) == 100
    assert all(re.fullmatch(rf"rcl_{kind}_[0-9A-Za-z]{{38}}", secret) for secret in secrets)
    assert all(is_well_formed(secret) for secret in secrets)


def test_the_checksum_is_a_crc32_in_base_62() -> None:
    """It covers kind and body, so that other programs can check keys offline. The format is frozen: keys are in use."""
    body = "0" * 32
    digits = [crc32(f"agent_{body}".encode()) // 62**power % 62 for power in reversed(range(6))]
    checksum = "".join((string.digits + string.ascii_uppercase + string.ascii_lowercase)[digit] for digit in digits)
    assert is_well_formed(f"rcl_agent_{body}{checksum}")
    assert not is_well_formed(f"rcl_admin_{body}{checksum}")


@given(secret=SECRETS, place=st.integers(min_value=0), character=st.sampled_from(ALPHABET + "_ \n٣é"))
def test_a_key_with_one_wrong_character_is_malformed(secret: str, place: int, character: str) -> None:
    place %= len(secret)
    assume(secret[place] != character)
    assert not is_well_formed(secret[:place] + character + secret[place + 1 :])


@given(secret=SECRETS, place=st.integers(min_value=0))
def test_a_key_with_two_swapped_characters_is_malformed(secret: str, place: int) -> None:
    place %= len(secret) - 1
    assume(secret[place] != secret[place + 1])
    assert not is_well_formed(secret[:place] + secret[place + 1] + secret[place] + secret[place + 2 :])


@given(st.text())
def test_any_text_can_be_checked_for_the_format(text: str) -> None:
    assert not is_well_formed(text)


@given(secret=SECRETS, other=SECRETS)
def test_a_hash_depends_on_the_secret_and_on_the_pepper(secret: str, other: str) -> None:
    hashed = hash_secret(secret, b"pepper")
    assert len(hashed) == 32
    assert hashed == hash_secret(secret, b"pepper")
    assert hashed not in (hash_secret(other, b"pepper"), hash_secret(secret, b"Pepper"), hash_secret(secret, b""))


@given(SECRETS)
def test_a_hint_shows_the_last_four_characters(secret: str) -> None:
    prefix, _, end = hint_of(secret).partition("…")
    assert secret.startswith(prefix)
    assert prefix.count("_") == 2
    assert secret.endswith(end)
    assert len(end) == 4
