"""How a text is split into passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.graph.passages.model import MAX_CHARACTERS, MAX_UNSPACED, MAX_WORDS, split

SENTENCES = st.lists(st.text(alphabet="ab éк.!? \n", max_size=200), max_size=20).map(". ".join)
LONG_SENTENCES = st.lists(st.text(alphabet="ab", min_size=1, max_size=3), max_size=400).map(" ".join)
UNBROKEN = st.integers(0, 5 * MAX_CHARACTERS).map("x".__mul__)
UNSPACED = st.text(alphabet="東京タワーไทย。！？、」 a\n", max_size=1_500)
TEXTS = st.one_of(SENTENCES, LONG_SENTENCES, UNBROKEN, UNSPACED, st.text())


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
    assert [len(passage) for passage in split("x" * 4_500)] == [2_000, 2_000, 500]


@given(UNSPACED)
def test_of_a_script_without_spaces_a_passage_is_short_and_a_piece_of_its_text(text: str) -> None:
    for passage in split(text):
        assert sum(not letter.isspace() for letter in passage) <= MAX_UNSPACED
        assert passage in " ".join(text.split())


@pytest.mark.parametrize("end", ["。", "！", "？", "。」"])
def test_sentences_of_a_script_without_spaces_stay_whole(end: str) -> None:
    sentence = "東" * 119 + end
    assert list(split(sentence * 3)) == [sentence] * 3


def test_short_sentences_of_a_script_without_spaces_are_together() -> None:
    sentence = "我喜欢喝茶。"
    assert [len(passage) for passage in split(sentence * 50)] == [198, 102]


def test_a_longer_sentence_of_a_script_without_spaces_is_cut_at_its_clauses() -> None:
    clause = "東" * 29 + "、"
    assert [len(passage) for passage in split(clause * 10)] == [180, 120]
    assert [len(passage) for passage in split("東" * 450)] == [200, 200, 50]
