"""Normal forms of texts with very many marks, which the standard library sorts in quadratic time."""

import sys
import unicodedata
from itertools import groupby
from typing import Literal

import pytest

from recollect.text.unicode_forms import MAX_MARKS, normalize
from recollect.words.analysis import passage_vector

FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
ABOVE, BELOW = "\u0301", "\u0323"


def _most_marks(text: str) -> int:
    decomposed = unicodedata.normalize("NFKD", text)
    runs = groupby(decomposed, key=lambda character: unicodedata.combining(character) > 0)
    return max((len(list(run)) for is_mark, run in runs if is_mark), default=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    ["", "plain", "Zoe\u0308 \u1e69 ﬁ ½", "e" + (ABOVE + BELOW) * (MAX_MARKS // 2), "🚀" * 100, "…" * 100, "한국어"],
)
def test_texts_that_people_write_are_normalized_as_the_standard_library_does(
    text: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"]
) -> None:
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "marks",
    [ABOVE + BELOW, ABOVE + "\uff9e", "\u0f73" + ABOVE, "\u0344\u0345", "\U0001d165\u20d0"],
    ids=["above and below", "of half width", "tibetan", "two in one", "of music"],
)
def test_only_the_first_marks_on_one_letter_count(marks: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    normal = normalize(form, f"a{marks * 2_000}b{marks}c")
    assert normal.startswith(unicodedata.normalize(form, "a" + marks)[0])
    assert normal.endswith(unicodedata.normalize(form, f"b{marks}c"))
    assert _most_marks(normal) <= 2 * MAX_MARKS, "a mark may consist of two"


def test_no_character_brings_marks_that_are_not_counted() -> None:
    characters = (chr(code) for code in range(0x80, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    marks = [each for each in characters if unicodedata.combining(unicodedata.normalize("NFKD", each)[0])]
    assert len(marks) > 800
    assert [mark for mark in marks if _most_marks(normalize("NFC", "a" + mark * 100)) > 2 * MAX_MARKS] == []


def test_a_word_with_very_many_marks_is_found_without_them() -> None:
    lexemes = passage_vector("Zalgo" + (ABOVE + BELOW) * 4_000 + " comes")
    assert "'zalgo':1C" in lexemes
    assert len(lexemes) < 200
