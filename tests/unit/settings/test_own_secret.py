"""The development secret is refused where other machines reach the gateway."""

import pytest

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.settings.storage import DEVELOPMENT_SECRET


def settings(host: str, public_url: str | None, secret: str = DEVELOPMENT_SECRET) -> Settings:
    return Settings.model_validate({"host": host, "public_url": public_url, "key_secret": secret})


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
    settings(host, public_url, "k" * 32).require_own_secret()


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
