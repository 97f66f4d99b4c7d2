"""The words of English: how much is looked up to see whether a word is one."""

from recollect.retrieval.recall.english_words import English, english


class _CountedWords(dict[str, int]):
    """Words that count how often they are asked for."""

    asked = 0

    def get(self, key: str, default: int = 0) -> int:  # type: ignore[override]
        self.asked += 1
        return super().get(key, default)


def test_a_compound_of_two_frequent_words_is_known() -> None:
    assert english().has("backend")
    assert not english().has("backenz")


def test_parts_of_a_very_long_word_are_not_looked_up() -> None:
    words = _CountedWords(back=10_000, end=10_000)
    known = English(words, {})
    assert known.has("backend")
    asked = words.asked
    assert asked > 0
    assert not known.has("a" * 8_000)
    assert words.asked == asked
