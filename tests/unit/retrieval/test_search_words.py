"""How texts in any script are split into words."""

import re
import sys
import unicodedata

import pytest

from recollect.errors import InvalidInput
from recollect.retrieval.search.words import MAX_WORDS, word_pattern, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada writes programs", ["Ada", "writes", "programs"]),
        ("  node.js, C++ & snake_case!", ["node", "js", "C", "snake_case"]),
        ("it’s “quoted” – 100 %", ["it", "s", "quoted", "100"]),
        ("Привет, мир!", ["Привет", "мир"]),
        ("e\u0301lan élan", ["e\u0301lan", "élan"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("東京タワー, Tokyo", ["東京", "京タ", "タワ", "ワー", "Tokyo"]),
        ("日本語。「はい」", ["日本", "本語", "はい"]),
        ("서울에서 茶", ["서울", "울에", "에서", "茶"]),
        ("กรุงเทพ", ["กรุ", "รุง", "งเท", "เทพ"]),
        ("👩\u200d🔬 works", ["👩\u200d🔬", "works"]),
        ("tea tea", ["tea", "tea"]),
        ("%_\\", ["_"]),
        ("... --- !?", []),
        ("", []),
    ],
)
def test_a_text_is_split_into_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_every_letter_number_and_mark_is_part_of_a_word() -> None:
    for code in range(1, sys.maxunicode):
        character = chr(code)
        if unicodedata.category(character)[0] in "LNM":
            assert words_of(character) == [character], f"U+{code:04X}"


def test_no_word_contains_a_special_character_of_regular_expressions() -> None:
    for code in range(1, 128):
        for word in words_of(chr(code)):
            assert re.escape(word) == word


@pytest.mark.parametrize(("word", "times"), [("art", 2), ("ART", 0), ("京", 2), ("é", 0), ("_", 0)])
def test_only_whole_words_are_found(word: str, times: int) -> None:
    assert len(re.findall(word_pattern(word), "art, party art 東京京都 café a_b")) == times


def test_too_many_words_are_refused() -> None:
    assert len(words_of("a " * MAX_WORDS)) == MAX_WORDS
    with pytest.raises(InvalidInput, match="words"):
        words_of("a " * (MAX_WORDS + 1))
