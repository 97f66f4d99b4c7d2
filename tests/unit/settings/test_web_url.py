"""The addresses of HTTP services: malformed ones are refused when settings are read."""

import traceback

import pytest
from pydantic import ValidationError

from recollect.settings import Settings
from recollect.settings.addresses.web_url import read_web_url

WRONG = "ftp://user:secret@h"
SETTINGS = ("breached_passwords_url", "embedding_url", "otlp_endpoint")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "h:4318",
        "ftp://user:secret@h",
        "grpc://h:4317",
        "https://",
        "https:///range",
        "http:h",
        "http://h:port",
        "http://h:0",
        "http://h:99999",
        "http://[::1",
        "http://h\n",
        "http://user:sécret@h",
    ],
)
def test_a_malformed_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="it") as refusal:
        read_web_url(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("text", ["http://127.0.0.1:4318", "https://user:secret@h/v1", "HTTPS://h", "http://[::1]:9/x"])
def test_a_valid_address_is_unchanged(text: str) -> None:
    assert read_web_url(text) == text


@pytest.mark.parametrize("name", SETTINGS)
def test_a_malformed_address_is_refused_by_the_name_of_its_setting(name: str) -> None:
    with pytest.raises(ValidationError, match=name) as refusal:
        Settings.model_validate({name: WRONG})
    assert "secret" not in "".join(traceback.format_exception(refusal.value))
