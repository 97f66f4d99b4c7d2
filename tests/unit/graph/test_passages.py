"""How a text is split into passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.graph.passages.model import MAX_CHARACTERS, MAX_WORDS, split

SENTENCES = st.lists(st.text(alphabet="ab é東.!? \n", max_size=200), max_size=20).map(". ".join)
LONG_SENTENCES = st.lists(st.text(alphabet="ab", min_size=1, max_size=3), max_size=400).map(" ".join)
UNBROKEN = st.integers(0, 5 * MAX_CHARACTERS).map("x".__mul__)
TEXTS = st.one_of(SENTENCES, LONG_SENTENCES, UNBROKEN, st.text())


@given(TEXTS)
def test_the_passages_contain_the_text_once_and_in_order(text: str) -> None:
    assert "".join("".join(split(text)).split()) == "".join(text.split())


@given(TEXTS)
def test_passages_are_bounded_and_never_blank(text: str) -> None:
    for passage in split(text):
        assert 1 <= len(passage.split()) <= MAX_WORDS
        assert len(passage) <= MAX_CHARACTERS


@given(LONG_SENTENCES | SENTENCES)
def test_no_two_adjacent_passages_would_fit_into_one(text: str) -> None:
    """An exception is a sentence that was cut for its length: its rest may be short."""
    counts = [len(passage.split()) for passage in split(text)]
    assert all(a + b > MAX_WORDS or a == MAX_WORDS for a, b in pairwise(counts))


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", "\u3000"])
def test_a_blank_text_has_no_passages(text: str) -> None:
    assert list(split(text)) == []


def test_a_short_text_is_one_passage() -> None:
    assert list(split("It rained.\nAda  stayed in! Why? 誰も知らない。")) == [
        "It rained. Ada stayed in! Why? 誰も知らない。"
    ]


def test_sentences_stay_whole_where_they_can() -> None:
    sentence = " ".join(["word"] * 49 + ["end."])
    assert list(split(f"{sentence} {sentence} {sentence}")) == [sentence] * 3


@pytest.mark.parametrize("end", [".", "!", "?", "。", "！", "？", ""])
def test_a_sentence_ends_at_a_punctuation_mark_or_line_end(end: str) -> None:
    first = " ".join(["word"] * 50) + end
    separator = " " if end else "\n"
    assert list(split(f"{first}{separator}{first}")) == [first, first]


def test_a_long_sentence_is_cut_at_words_or_else_at_characters() -> None:
    assert [len(passage.split()) for passage in split(" ".join(["word"] * 200))] == [80, 80, 40]
    assert [len(passage) for passage in split("東" * 4_500)] == [2_000, 2_000, 500]
