"""Names and pages of clients, by which a person recognises them on the consent page."""

import sys
import unicodedata

import pytest

from recollect.accounts.oauth.clients.model import UNNAMED, client_name, client_uri
from recollect.errors import InvalidInput


@pytest.mark.proves("security: visible-client-names")
def test_a_name_that_shows_nothing_is_refused(subtests: pytest.Subtests) -> None:
    for name in ("\u200b", "\u3164", "\u115f\u1160", "\u2800", "\ufe0f", "\u0301", "\u00a0", " \u2060 ", "\U000e0020"):
        with subtests.test(name=ascii(name)), pytest.raises(InvalidInput, match="visible"):
            client_name(name)


@pytest.mark.proves("security: visible-client-names")
def test_a_name_with_characters_that_show_nothing_is_refused() -> None:
    """It could look like the name of another client, letter by letter."""
    formats = [char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) == "Cf"]
    for character in (*formats, "\u034f", "\u115f", "\u3164", "\x00", "\u2028"):
        with pytest.raises(InvalidInput):
            client_name(f"Claude{character} by Anthropic")
        with pytest.raises(InvalidInput):
            client_uri(f"https://claude.example{character}/page")


def test_ordinary_names_are_accepted(subtests: pytest.Subtests) -> None:
    for name in ("Claude", "VS Code – Insiders", "Größe", "日本語", "कोड", "🙂", "❤\ufe0f notes", "+"):
        with subtests.test(name):
            assert client_name(f" {name} ") == name
    assert client_name(None) == client_name("") == UNNAMED
    assert client_uri("https://client.example/page?x=1") == "https://client.example/page?x=1"
