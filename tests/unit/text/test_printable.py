"""Showing foreign text on a terminal."""

import json
import unicodedata

import pytest

from recollect.text.control_characters import controls, printable, printable_json


@pytest.mark.parametrize("text", ["", "plain", "naïve Grüße 日本\u3000語", "👩‍👩‍👧", "a\\b", "[/x]"])
def test_printable_text_is_unchanged(text: str) -> None:
    assert (printable(text), controls(text)) == (text, False)


def test_no_control_character_is_left() -> None:
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))
    shown = printable(every)
    assert not controls(shown)
    assert not [each for each in shown if unicodedata.category(each) in ("Cc", "Zl", "Zp")]
    assert printable("a\ud800") == r"a\ud800"


def test_line_feeds_may_be_kept() -> None:
    assert printable("a\x1b\nb\tc", lines=True) == "a\\x1b\nb\\tc"


def test_printable_json_parses_to_the_same_document() -> None:
    document = {"text": "a\x1b\x9b\u202e\u2028\n\t\x7fé"}
    encoded = json.dumps(document, ensure_ascii=False, indent=1)
    assert json.loads(printable_json(encoded)) == document
    assert not controls(printable_json(encoded).replace("\n", ""))
