"""A key secret that is public or may be guessed is refused where other machines reach the gateway."""

import pytest

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.settings.database import DEVELOPMENT_SECRET

ENOUGH = "k" * 32


def settings(
    host: str, public_url: str | None, secret: str = DEVELOPMENT_SECRET, accepted: tuple[str, ...] = ()
) -> Settings:
    given = {"key_secret": secret, "accepted_key_secrets": list(accepted)}
    return Settings.model_validate({"host": host, "public_url": public_url, **given})


@pytest.mark.proves("security: development-secret")
@pytest.mark.parametrize(
    ("host", "public_url"),
    [
        ("0.0.0.0", None),
        ("::", None),
        ("memory.example.com", None),
        ("0.0.0.0", "http://localhost:8787"),
        ("127.0.0.1", "https://memory.example.com"),
        ("127.0.0.1", "http://10.1.2.3:8787"),
        ("::1", "https://[2001:db8::1]"),
        ("localhost", "https://localhost.example.com"),
    ],
)
def test_the_development_secret_is_refused_where_others_reach_the_gateway(host: str, public_url: str | None) -> None:
    with pytest.raises(InvalidInput, match="RECOLLECT_KEY_SECRET: Set it to at least 32 random bytes"):
        settings(host, public_url).require_own_secret()
    settings(host, public_url, ENOUGH).require_own_secret()


@pytest.mark.parametrize(
    ("host", "public_url"),
    [
        ("127.0.0.1", None),
        ("::1", None),
        ("localhost", None),
        ("127.0.0.1", "http://localhost:8800"),
        ("::1", "http://[::1]"),
        ("localhost", "https://127.0.0.1:8443"),
    ],
)
def test_the_development_secret_is_accepted_where_only_this_machine_does(host: str, public_url: str | None) -> None:
    settings(host, public_url).require_own_secret()


@pytest.mark.proves("security: development-secret")
def test_a_short_secret_is_refused_where_others_reach_the_gateway(subtests: pytest.Subtests) -> None:
    for short in ("k", "k" * 31, "é" * 15):
        with subtests.test(short):
            with pytest.raises(InvalidInput, match=r"RECOLLECT_KEY_SECRET: .*`openssl rand -hex 32`"):
                settings("0.0.0.0", None, short).require_own_secret()
            settings("127.0.0.1", None, short).require_own_secret()
    for enough in (ENOUGH, "é" * 16):
        settings("0.0.0.0", None, enough).require_own_secret()


@pytest.mark.proves("security: development-secret")
def test_a_short_secret_can_be_replaced_and_a_public_one_is_not_accepted_beside_another() -> None:
    settings("0.0.0.0", None, ENOUGH, ("short",)).require_own_secret()
    for public in ("", DEVELOPMENT_SECRET):
        with pytest.raises(InvalidInput, match="RECOLLECT_ACCEPTED_KEY_SECRETS: It lists an empty secret"):
            settings("0.0.0.0", None, ENOUGH, ("short", public)).require_own_secret()
        settings("127.0.0.1", None, ENOUGH, (public,)).require_own_secret()
